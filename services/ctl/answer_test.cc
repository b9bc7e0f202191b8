#include "services/ctl/answer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kUsage[] =
    R"("usage":{"prompt_tokens":1200,"completion_tokens":5,"pagoda":{"computed":48,"local":0,"ram":1152,"disk":0}})";

std::string Delta(const std::string& text) {
  return R"(data: {"choices":[{"index":0,"delta":{"content":")" + text +
         R"("},"finish_reason":null}]})";
}

class AnswerTest : public testing::Test {
 protected:
  ManualClock clock_;
  std::vector<std::string> pieces_;
  AnswerReader reader_{&clock_, [this](std::string_view text) { pieces_.emplace_back(text); }};
};

TEST_F(AnswerTest, TextUsageAndTimesAreTakenFromTheStream) {
  reader_.TakeLine(R"(data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})");
  clock_.Advance(std::chrono::milliseconds(250));
  reader_.TakeLine(Delta("Hello"));
  reader_.TakeLine("");
  reader_.TakeLine(": keep-alive");
  clock_.Advance(std::chrono::milliseconds(100));
  reader_.TakeLine(Delta(" there"));
  reader_.TakeLine(
      R"(data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null})");
  clock_.Advance(std::chrono::milliseconds(900));
  reader_.TakeLine(std::string(R"(data: {"choices":[],)") + kUsage + "}");
  reader_.TakeLine("data: [DONE]");
  auto answer = reader_.Finish("worker-1");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->text, "Hello there");
  EXPECT_THAT(pieces_, ElementsAre("Hello", " there"));
  EXPECT_EQ(answer->finish_reason, "stop");
  EXPECT_EQ(answer->StatusLine(),
            "worker-1 | prompt 1200 = 48 computed + 0 local + 1152 RAM + 0 disk | TTFT 0.25 s | "
            "40.0 tokens/s");
  EXPECT_THAT(answer->ToJson(), HasSubstr(R"("text":"Hello there","finish_reason":"stop",)"
                                          R"("worker":"worker-1","ttft_seconds":0.25)"));
  EXPECT_THAT(answer->ToJson(), HasSubstr(kUsage));
}

TEST_F(AnswerTest, AnErrorInTheStreamIsReportedInTheServersWords) {
  reader_.TakeLine(Delta("Hel"));
  reader_.TakeLine(R"(data: {"error":{"message":"no worker can go on"}})");
  reader_.TakeLine("data: [DONE]");
  EXPECT_EQ(reader_.Finish("w").status(), absl::InternalError("no worker can go on"));
}

TEST_F(AnswerTest, AStreamWithoutItsEndIsAnError) {
  reader_.TakeLine(Delta("Hel"));
  EXPECT_EQ(reader_.Finish("w").status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(AnswerTest, StrangeEventsNeverCrash) {
  for (const char* line :
       {R"(data: {"choices":{}})", R"(data: {"choices":[7]})", R"(data: {"choices":[{"delta":7}]})",
        R"(data: {"choices":[{"delta":{"content":7}}]})", R"(data: {"usage":7})",
        R"(data: {"usage":{"prompt_tokens":"x","pagoda":7}})"}) {
    reader_.TakeLine(line);
  }
  reader_.TakeLine("data: [DONE]");
  auto answer = reader_.Finish("");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->text, "");
  AnswerReader other(&clock_, [](std::string_view) {});
  other.TakeLine("data: {broken");
  EXPECT_EQ(other.Finish("").status().code(), absl::StatusCode::kDataLoss);
}

TEST(AnswerStatusLineTest, WhatIsNotKnownIsLeftOut) {
  EXPECT_EQ(Answer().StatusLine(), "unknown worker");
}

TEST(ServerMessageTest, TheMessageIsTakenFromTheErrorBody) {
  EXPECT_EQ(ServerMessage(400, R"({"error":{"message":"unknown model"}})"),
            "unknown model (HTTP 400)");
  EXPECT_EQ(ServerMessage(502, "bad gateway"), "bad gateway (HTTP 502)");
}

}  // namespace
}  // namespace pagoda::ctl
