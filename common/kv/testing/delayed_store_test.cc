#include "common/kv/testing/delayed_store.h"

#include <utility>
#include <vector>

#include "common/kv/testing/in_memory_block_store.h"
#include "common/kv/testing/test_blocks.h"
#include "gtest/gtest.h"

namespace pagoda::testing {
namespace {

constexpr auto kDelay = std::chrono::seconds(5);

class DelayedStoreTest : public ::testing::Test {
 protected:
  // A lookup whose answer is numbered in order of its coming; -1 before.
  struct Lookup {
    int place = -1;
    Status status;
  };
  std::shared_ptr<Lookup> Find(CallContext context = {}) {
    auto lookup = std::make_shared<Lookup>();
    store_.FindMissing(context, refs_, [this, lookup](const FindResult& result) {
      lookup->status = result.status;
      lookup->place = answers_++;
    });
    return lookup;
  }
  void Advance(Duration by) {
    clock_.Advance(by);
    store_.Settle();  // hands over what the answers wrote
  }

  ManualClock clock_;
  int answers_ = 0;
  const std::vector<BlockRef> refs_ = RefsOf(MakeChain(1, 1, 64));
  DelayedStore store_{std::make_shared<InMemoryBlockStore>(UINT64_MAX, &clock_), &clock_,
                      [] { return kDelay; }};
};

TEST_F(DelayedStoreTest, AnAnswerComesWhenItsDelayHasPassedAndNotBefore) {
  auto lookup = Find();
  Advance(kDelay - Duration(1));
  EXPECT_EQ(lookup->place, -1);
  Advance(Duration(1));
  EXPECT_EQ(lookup->place, 0);
  EXPECT_TRUE(lookup->status.ok());
}

TEST_F(DelayedStoreTest, AnswersComeInTheOrderOfTheCallsThoughALaterOneHasAShorterDelay) {
  store_.SetDelay([delay = kDelay]() mutable { return std::exchange(delay, {}); });
  auto first = Find();
  auto second = Find();
  Advance(Duration(0));
  EXPECT_EQ(second->place, -1);
  Advance(kDelay);
  EXPECT_EQ(first->place, 0);
  EXPECT_EQ(second->place, 1);
}

TEST_F(DelayedStoreTest, ACancelledCallIsAnsweredAtOnceAndTheOthersWaitOn) {
  std::stop_source source;
  CallContext context;
  context.cancel = source.get_token();
  auto first = Find();
  auto second = Find(context);
  source.request_stop();
  Advance(Duration(1));
  EXPECT_EQ(second->status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(first->place, -1);
  EXPECT_EQ(store_.num_waiting(), 1u);
  Advance(kDelay);
  EXPECT_TRUE(first->status.ok());
}

TEST_F(DelayedStoreTest, ACallFailsAtItsDeadline) {
  CallContext context;
  context.deadline = clock_.Now() + kDelay / 2;
  auto lookup = Find(context);
  Advance(kDelay / 2 - Duration(1));
  EXPECT_EQ(lookup->place, -1);
  Advance(Duration(1));
  EXPECT_EQ(lookup->status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(DelayedStoreTest, AShorterDelayHurriesWhatWaits) {
  auto lookup = Find();
  store_.SetDelay([] { return Duration(10); });
  Advance(Duration(9));
  EXPECT_EQ(lookup->place, -1);
  Advance(Duration(1));
  EXPECT_EQ(lookup->place, 0);
}

TEST(DelayedStoreEndTest, WhatWaitsIsAnsweredWhenTheStoreEnds) {
  ManualClock clock;
  Status answer;
  {
    DelayedStore store(std::make_shared<InMemoryBlockStore>(), &clock, [] { return kDelay; });
    store.FindMissing({}, {}, [&](const FindResult& result) { answer = result.status; });
  }
  EXPECT_EQ(answer.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace pagoda::testing
