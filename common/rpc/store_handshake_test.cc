#include "common/rpc/store_handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/version.h"
#include "common/kv/block_store.h"
#include "common/rpc/channel.h"

namespace pagoda::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;
using v1::DescribeResponse;

constexpr TimePoint kStart{std::chrono::hours(1)};

DescribeResponse Store(uint64_t instance, uint32_t min = kProtocolMin,
                       uint32_t max = kProtocolMax) {
  DescribeResponse answer;
  answer.mutable_protocol()->set_min(min);
  answer.mutable_protocol()->set_max(max);
  answer.set_instance_id(instance);
  answer.set_max_message_bytes(kMaxMessageBytes);
  answer.set_max_keys_per_call(kMaxBlocksPerCall);
  return answer;
}

class StoreHandshakeTest : public ::testing::Test {
 protected:
  void Hear(const DescribeResponse& answer) { handshake_.Answered(absl::OkStatus(), answer); }
  std::string LogOf(const DescribeResponse& answer) {
    CaptureStderr();
    Hear(answer);
    return GetCapturedStderr();
  }
  bool Shows(const std::string& line) {
    return metrics_.Render().find("pagoda:" + line + "\n") != std::string::npos;
  }

  Metrics metrics_;
  StoreHandshake handshake_{"store:1", &metrics_};
};

TEST_F(StoreHandshakeTest, R25AStoreOfAForeignProtocolIsAbsentAnAlarmAndOneErrorLine) {
  EXPECT_TRUE(handshake_.Limits().ok()) << "nobody waits for the first answer";
  std::string log = LogOf(Store(7, kProtocolMax + 1, kProtocolMax + 3));
  EXPECT_THAT(log, HasSubstr("\"level\":\"error\""));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
  EXPECT_EQ(handshake_.Limits().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(LogOf(Store(7, kProtocolMax + 1, kProtocolMax + 3)), "") << "it is known";
  EXPECT_TRUE(Shows("kv_handshake_mismatches_total 2"));
  EXPECT_THAT(LogOf(Store(8, kProtocolMax + 1, kProtocolMax + 3)), HasSubstr("\"error\""));
  Hear(Store(9));
  EXPECT_TRUE(handshake_.Limits().ok());
}

TEST_F(StoreHandshakeTest, R25AForeignStoreThatDoesNotNameItselfIsOneErrorLineToo) {
  DescribeResponse nameless = Store(0, kProtocolMax + 1, kProtocolMax + 3);
  EXPECT_THAT(LogOf(nameless), HasSubstr("\"level\":\"error\""));
  EXPECT_EQ(LogOf(nameless), "") << "it is known";
}

TEST_F(StoreHandshakeTest, R25ARangeThatOverlapsOursIsOneOfUs) {
  Hear(Store(7, 0, kProtocolMax + 3));
  EXPECT_TRUE(handshake_.Limits().ok());
  Hear(Store(7, 0, kProtocolMin - 1));
  EXPECT_FALSE(handshake_.Limits().ok()) << "too old";
  EXPECT_TRUE(Shows("kv_handshake_mismatches_total 1"));
}

TEST_F(StoreHandshakeTest, R28ARestartedStoreIsCountedAndLoggedOnceAndItsOldLimitsAreForgotten) {
  DescribeResponse first = Store(7);
  first.set_max_keys_per_call(10);
  EXPECT_EQ(LogOf(first), "") << "the first instance replaces none";
  EXPECT_EQ(handshake_.Limits()->keys_per_call, 10u);
  EXPECT_EQ(LogOf(first), "");
  EXPECT_TRUE(Shows("kv_store_restarts_total 0"));
  std::string log = LogOf(Store(8));
  EXPECT_THAT(log, HasSubstr("\"level\":\"info\""));
  EXPECT_THAT(log, HasSubstr("\"before\":7,\"now\":8"));
  EXPECT_TRUE(Shows("kv_store_restarts_total 1"));
  EXPECT_EQ(handshake_.Limits()->keys_per_call, kMaxBlocksPerCall);
}

TEST_F(StoreHandshakeTest, R28WhatWasLearnedEndsWithTheConnectionButNotTheInstancesName) {
  DescribeResponse first = Store(7);
  first.set_max_message_bytes(1000);
  Hear(first);
  handshake_.ConnectionLost();
  EXPECT_EQ(handshake_.Limits()->message_bytes, uint64_t{kMaxMessageBytes});
  Hear(Store(8));
  EXPECT_TRUE(Shows("kv_store_restarts_total 1"));
}

TEST_F(StoreHandshakeTest, TheSmallerLimitHolds) {
  DescribeResponse answer = Store(7);
  answer.set_max_message_bytes(uint64_t{1} << 40);
  answer.set_max_keys_per_call(5);
  Hear(answer);
  EXPECT_EQ(handshake_.Limits()->message_bytes, uint64_t{kMaxMessageBytes});
  EXPECT_EQ(handshake_.Limits()->keys_per_call, 5u);
  answer.set_max_message_bytes(0);  // not stated
  answer.set_max_keys_per_call(0);
  Hear(answer);
  EXPECT_EQ(handshake_.Limits()->message_bytes, uint64_t{kMaxMessageBytes});
  EXPECT_EQ(handshake_.Limits()->keys_per_call, kMaxBlocksPerCall);
}

TEST_F(StoreHandshakeTest, TheStoreIsAskedOnceASecondAndAtOnceAfterALostConnection) {
  EXPECT_TRUE(handshake_.TryAsk(kStart));
  EXPECT_FALSE(handshake_.TryAsk(kStart + std::chrono::hours(1))) << "the first is not answered";
  Hear(Store(7));
  EXPECT_FALSE(handshake_.TryAsk(kStart + std::chrono::milliseconds(999)));
  EXPECT_TRUE(handshake_.TryAsk(kStart + std::chrono::seconds(1)));
  handshake_.ConnectionLost();  // the answer may still be the old instance's
  Hear(Store(7));
  EXPECT_TRUE(handshake_.TryAsk(kStart + std::chrono::seconds(1)));
}

TEST_F(StoreHandshakeTest, AStoreThatDoesNotAnswerTheQuestionIsUsedAsBefore) {
  handshake_.Answered(absl::UnimplementedError("what?"), {});
  EXPECT_TRUE(handshake_.Limits().ok());
  Hear(Store(7, kProtocolMax + 1, kProtocolMax + 1));
  handshake_.Answered(absl::DeadlineExceededError("busy"), {});
  EXPECT_FALSE(handshake_.Limits().ok()) << "silence says nothing new";
}

}  // namespace
}  // namespace pagoda::rpc
