#include "common/kv/breaker_store.h"

#include <deque>
#include <optional>

#include "common/kv/testing/test_blocks.h"
#include "gtest/gtest.h"

namespace pagoda::testing {
namespace {

// Answers every call with `status`; or, while `holds`, lookups when it is told to.
struct ScriptedStore final : public BlockStore {
  void FindMissing(const CallContext&, std::vector<BlockRef> refs, FindCallback done) override {
    ++calls;
    auto answer = [this, count = refs.size(), done] { done(FailedFind(status, count)); };
    if (!holds) return answer();
    held.push_back(answer);
  }
  void Get(const CallContext&, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) override {
    ++calls;
    if (!status.ok()) return FailGet(status, refs.size(), *sink);
    for (size_t i = 0; i < refs.size(); ++i) sink->Done(i, {GetOutcome::kMissing, Tier::kNone});
    sink->Finished();
  }
  void Put(const CallContext&, std::vector<PutBlock> blocks, PutCallback done) override {
    ++calls;
    done(status.ok() ? std::vector<PutResult>(blocks.size(), {PutOutcome::kHave, 0, status})
                     : FailedPut(status, blocks.size()));
  }
  void ReportCorrupt(const CorruptReport&) override { ++reports; }

  Status status;
  bool holds = false;
  std::deque<std::function<void()>> held;
  int calls = 0;
  int reports = 0;
};

class BreakerStoreTest : public ::testing::Test {
 protected:
  Status Find(CallContext context = {}) {
    return FindAndWait(breaker_, RefsOf(blocks_), std::move(context)).status;
  }
  void Call() { (void)Find(); }
  void Open() {
    inner_.status = absl::UnavailableError("dead");
    for (int i = 0; i < 3; ++i) Call();
    ASSERT_FALSE(breaker_.closed());
    inner_.calls = 0;
  }
  bool Shows(const std::string& metric) {
    return metrics_.Render().find("\npagoda:" + metric + "\n") != std::string::npos;
  }

  const std::vector<PutBlock> blocks_ = MakeChain(1, 2, 100);
  ManualClock clock_;
  Metrics metrics_;
  double random_ = 0;
  ScriptedStore inner_;
  BreakerStore breaker_{
      &inner_, {.random = [this] { return random_; }, .clock = &clock_, .metrics = &metrics_}};
};

TEST_F(BreakerStoreTest, R33ThreeFailuresInARowOpenItAndThenNobodyWaits) {
  inner_.status = absl::DeadlineExceededError("slow");
  EXPECT_EQ(Find(), inner_.status);
  EXPECT_EQ(GetAndWait(breaker_, RefsOf(blocks_))->result(1).status, inner_.status);
  EXPECT_TRUE(breaker_.closed());
  EXPECT_EQ(PutAndWait(breaker_, blocks_)[0].status, inner_.status);
  EXPECT_FALSE(breaker_.closed());
  EXPECT_TRUE(Shows("kv_breaker_state 2"));
  EXPECT_TRUE(Shows("kv_breaker_retry_in_seconds 0.5"));
  EXPECT_TRUE(Shows("kv_breaker_opened_total 1"));
  inner_.calls = 0;
  inner_.status = absl::OkStatus();
  EXPECT_EQ(Find().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GetAndWait(breaker_, RefsOf(blocks_))->result(0).outcome, GetOutcome::kFailed);
  EXPECT_EQ(PutAndWait(breaker_, blocks_)[1].outcome, PutOutcome::kFailed);
  breaker_.ReportCorrupt({});
  EXPECT_EQ(inner_.calls + inner_.reports, 0);
}

TEST_F(BreakerStoreTest, ASuccessInBetweenStartsTheCountAgain) {
  for (int i = 0; i < 5; ++i) {
    inner_.status = absl::InternalError("broken");
    GetAndWait(breaker_, RefsOf(blocks_));
    GetAndWait(breaker_, RefsOf(blocks_));
    inner_.status = absl::OkStatus();
    GetAndWait(breaker_, RefsOf(blocks_));  // all missing: an answer like any other
  }
  EXPECT_TRUE(breaker_.closed());
}

TEST_F(BreakerStoreTest, R33FastLookupsDoNotHideReadsThatNeverCome) {
  auto lookup_works_and_read_fails = [this] {
    inner_.status = absl::OkStatus();
    EXPECT_TRUE(Find().ok());
    inner_.status = absl::DeadlineExceededError("slow");
    GetAndWait(breaker_, RefsOf(blocks_));
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(breaker_.closed());
    lookup_works_and_read_fails();
  }
  // From now on one read a pause finds out, and the pauses grow.
  for (int pause_ms : {500, 1000, 2000}) {
    EXPECT_FALSE(breaker_.closed());
    inner_.status = absl::OkStatus();
    clock_.Advance(std::chrono::milliseconds(pause_ms) - Duration(1));
    Call();
    EXPECT_FALSE(breaker_.closed()) << pause_ms;
    clock_.Advance(Duration(1));
    Call();
    EXPECT_TRUE(breaker_.closed()) << pause_ms;
    lookup_works_and_read_fails();
  }
  clock_.Advance(std::chrono::seconds(4));
  inner_.status = absl::OkStatus();
  Call();
  GetAndWait(breaker_, RefsOf(blocks_));  // reads work: as if nothing had been
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(breaker_.closed());
    lookup_works_and_read_fails();
  }
  EXPECT_TRUE(Shows("kv_breaker_retry_in_seconds 0.5"));
}

TEST_F(BreakerStoreTest, WhatTheStoreCannotHelpSaysNothing) {
  CallContext late{.deadline = clock_.Now()};
  for (int i = 0; i < 5; ++i) {
    inner_.status = absl::CancelledError("called off");
    Call();
    inner_.status = absl::ResourceExhaustedError("too many calls");
    Call();
    EXPECT_EQ(Find(late).code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(inner_.calls, 10);
  EXPECT_TRUE(breaker_.closed());
}

TEST_F(BreakerStoreTest, ACallThatIsCalledOffAfterItsDeadlineHasMissedIt) {
  inner_.status = absl::CancelledError("called off");
  inner_.holds = true;
  for (int i = 0; i < 3; ++i) {
    breaker_.FindMissing({.deadline = clock_.Now() + std::chrono::seconds(1)}, {},
                         [](FindResult) {});
  }
  clock_.Advance(std::chrono::seconds(1));
  for (auto& answer : inner_.held) answer();
  EXPECT_FALSE(breaker_.closed());
}

TEST_F(BreakerStoreTest, R33AProbeThatSucceedsClosesItAndNoCallWaitsForIt) {
  Open();
  clock_.Advance(std::chrono::milliseconds(499));
  Call();
  EXPECT_EQ(inner_.calls, 0);
  clock_.Advance(std::chrono::milliseconds(1));
  inner_.holds = true;
  inner_.status = absl::OkStatus();
  EXPECT_EQ(Find().code(), absl::StatusCode::kUnavailable) << "answered, while the probe runs";
  Call();
  EXPECT_EQ(inner_.calls, 1) << "one probe at a time";
  EXPECT_TRUE(Shows("kv_breaker_state 1"));
  EXPECT_FALSE(breaker_.closed());
  inner_.held[0]();
  EXPECT_TRUE(breaker_.closed());
  EXPECT_TRUE(Shows("kv_breaker_state 0"));
  inner_.holds = false;
  EXPECT_TRUE(Find().ok());
}

TEST_F(BreakerStoreTest, R33FailedProbesDoubleThePauseUpToItsLimit) {
  Open();
  for (int pause_ms : {500, 1000, 2000, 4000, 8000, 10'000, 10'000}) {
    inner_.calls = 0;
    clock_.Advance(std::chrono::milliseconds(pause_ms) - Duration(1));
    Call();
    EXPECT_EQ(inner_.calls, 0) << pause_ms;
    clock_.Advance(Duration(1));
    Call();
    EXPECT_EQ(inner_.calls, 1) << pause_ms;
  }
  EXPECT_TRUE(Shows("kv_breaker_opened_total 1"));
}

TEST_F(BreakerStoreTest, ChanceTakesUpToAFifthOffThePause) {
  random_ = 0.5;
  Open();
  clock_.Advance(std::chrono::milliseconds(449));
  Call();
  EXPECT_EQ(inner_.calls, 0);
  clock_.Advance(std::chrono::milliseconds(1));
  Call();
  EXPECT_EQ(inner_.calls, 1);
}

}  // namespace
}  // namespace pagoda::testing
