#include "services/worker/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "common/kv/testing/in_memory_block_store.h"
#include "services/worker/testing/engine_harness.h"
#include "services/worker/testing/gated_store.h"
#include "services/worker/testing/test_sequences.h"

namespace pagoda::worker {
namespace {

using pagoda::testing::InMemoryBlockStore;
using testing::Alone;
using testing::Client;
using testing::GatedStore;
using ::testing::HasSubstr;
using testing::kVocabulary;
using testing::Request;
using testing::SmallEngine;
using testing::Tokens;
using testing::Worker;

TEST(EngineTest, ARequestGetsItsTokensAndItsUsage) {
  Worker worker(SmallEngine());
  worker.engine->Start();
  GenerationRequest request = Request(Tokens(100), 20);
  auto [id, client] = worker.Submit(request);
  GenerationResult result = client->Wait();
  EXPECT_EQ(result.reason, FinishReason::kLength);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(client->tokens(), Alone(request));
  EXPECT_EQ(result.usage.prompt_tokens, 100u);
  EXPECT_EQ(result.usage.computed, 100u);
  EXPECT_EQ(result.usage.completion_tokens, 20u);
  auto [again, second] = worker.Submit(request);
  EXPECT_EQ(second->Wait().usage.local, 96u);
  EXPECT_EQ(second->tokens(), Alone(request));
}

TEST(EngineTest, EndsAtAStopTokenAndSendsIt) {
  Worker worker(SmallEngine());
  GenerationRequest request = Request(Tokens(20), 20);
  std::vector<TokenId> right = Alone(request);
  request.stop_token_ids = {right[4]};
  auto [id, client] = worker.Submit(request);
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_EQ(client->result()->reason, FinishReason::kStop);
  EXPECT_EQ(client->tokens(), std::vector<TokenId>(right.begin(), right.begin() + 5));
}

TEST(EngineTest, TokensOfAnEarlierAttemptAreContinuedAndNotSentAgain) {
  Worker worker(SmallEngine());
  GenerationRequest request = Request(Tokens(20), 20);
  std::vector<TokenId> right = Alone(request);
  request.output_ids.assign(right.begin(), right.begin() + 7);
  auto [id, client] = worker.Submit(request);
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_EQ(client->tokens(), std::vector<TokenId>(right.begin() + 7, right.end()));
  EXPECT_EQ(client->result()->usage.computed, 20u);
  EXPECT_EQ(client->result()->usage.recomputed, 7u);
  EXPECT_EQ(client->result()->usage.completion_tokens, 20u);
}

// R2, R5, R6: many at once, a pool far too small for them, a store behind it.
TEST(EngineTest, ManyConcurrentRequestsOnTwoWorkersGetTheTokensOfALoneRun) {
  InMemoryBlockStore held;
  GatedStore store(&held);
  ManualClock clock;  // stands still: the fake model is faster than any store, and no load would do
  Worker workers[] = {Worker(SmallEngine(50), &store, &clock),
                      Worker(SmallEngine(50), &store, &clock)};
  for (Worker& worker : workers) worker.engine->Start();
  std::mt19937 random(1);
  std::vector<std::pair<GenerationRequest, std::shared_ptr<Client>>> running;
  for (int i = 0; i < 64; ++i) {
    auto prompt = Tokens(static_cast<int>(random() % 150) + 1, random() % 2 * 300);
    for (size_t t = prompt.size() / 2 + random() % 40; t < prompt.size(); ++t) {
      prompt[t] = random() % kVocabulary;
    }
    GenerationRequest request = Request(prompt, random() % 60 + 1);
    request.sampling.seed = random() % 3;
    running.emplace_back(request, workers[i % 2].Submit(request).second);
  }
  uint32_t local = 0;
  for (auto& [request, client] : running) {
    GenerationUsage usage = client->Wait().usage;
    EXPECT_EQ(client->tokens(), Alone(request));
    EXPECT_EQ(usage.computed + usage.local + usage.ram + usage.disk, usage.prompt_tokens);
    local += usage.local;
  }
  EXPECT_GT(local, 0u);
  double preempted = 0;
  for (Worker& worker : workers) {
    preempted += worker.Value("num_preemptions_total");
    EXPECT_TRUE(worker.engine->WaitUntilIdle(TimePoint::max()));
    EXPECT_GT(worker.engine->stats().max_step_seqs, 4);
  }
  EXPECT_GT(preempted, 0);
  // What one worker pushed serves the other.
  for (Worker& worker : workers) worker.WaitForPushes();
  GenerationRequest fresh = Request(Tokens(150, 500), 5);
  workers[0].Submit(fresh).second->Wait();
  workers[0].WaitForPushes();
  auto [id, client] = workers[1].Submit(fresh);
  EXPECT_EQ(client->Wait().usage.ram, 144u);
  EXPECT_EQ(client->tokens(), Alone(fresh));
}

TEST(EngineTest, ACancelledRequestEndsAndLeavesNoBlockHeld) {
  Worker worker(SmallEngine());
  auto [id, client] = worker.Submit(Request(Tokens(100), 200));
  worker.StepUntil([&, c = client] { return c->tokens().size() == 3; });
  EXPECT_LT(worker.engine->stats().free_blocks, 64);
  worker.engine->Cancel(id);
  worker.engine->Cancel(SequenceId{12345});
  worker.engine->RunOnce(TimePoint{});
  ASSERT_TRUE(client->result());
  EXPECT_EQ(client->result()->reason, FinishReason::kCancelled);
  EXPECT_EQ(worker.engine->stats().free_blocks, 64);
  EXPECT_EQ(worker.engine->stats().running, 0);
}

// R1
TEST(EngineTest, FreedBlocksArePoisoned) {
  Worker worker(SmallEngine());
  GenerationRequest request = Request(Tokens(100), 2);
  request.cache.scope = CacheScope::None();
  auto [id, client] = worker.Submit(request);
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  worker.engine->RunOnce(TimePoint{});
  for (int block = 0; block < 64; ++block) {
    for (std::byte byte : worker.model.Bytes(BlockId{block})) ASSERT_EQ(byte, std::byte{0xFF});
  }
}

TEST(EngineTest, ARequestEndsWhenItsDeadlinePasses) {
  ManualClock clock;
  Worker worker(SmallEngine(), nullptr, &clock);
  GenerationRequest request = Request(Tokens(10), 100);
  request.deadline = clock.Now() + std::chrono::seconds(1);
  auto [id, client] = worker.Submit(request);
  worker.engine->RunOnce(TimePoint{});
  worker.engine->RunOnce(TimePoint{});
  EXPECT_FALSE(client->result());
  clock.Advance(std::chrono::seconds(1));
  worker.engine->RunOnce(TimePoint{});
  ASSERT_TRUE(client->result());
  EXPECT_EQ(client->result()->reason, FinishReason::kDeadline);
  EXPECT_EQ(client->result()->status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(worker.Value("request_success_total{finished_reason=\"deadline\"}"), 1);
  EXPECT_EQ(client->tokens().size(), 2u);
}

TEST(EngineTest, AFullClientPausesItsSequenceOnly) {
  Worker worker(SmallEngine());
  GenerationRequest slow_request = Request(Tokens(10), 20);
  GenerationRequest request = Request(Tokens(10, 100), 20);
  auto [slow_id, slow] = worker.Submit(slow_request, 3);
  auto [id, client] = worker.Submit(request);
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_EQ(slow->tokens().size(), 3u);
  EXPECT_FALSE(worker.engine->RunOnce(TimePoint{})) << "nothing to do";
  slow->MakeRoom();
  worker.engine->Wake();
  worker.StepUntil([&, c = slow] { return c->result().has_value(); });
  EXPECT_EQ(slow->tokens(), Alone(slow_request));
}

TEST(EngineTest, RefusesWhatCannotBeServedNamingFieldAndLimit) {
  Worker worker(SmallEngine(10));
  auto refused = [&](GenerationRequest request) {
    return worker.engine->Submit(std::move(request), std::make_shared<Client>()).status();
  };
  Status status = refused(Request(Tokens(10), 400));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("400"));
  EXPECT_EQ(refused(Request({kVocabulary}, 1)).code(), absl::StatusCode::kInvalidArgument);
  status = refused(Request(Tokens(80), 2));
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("10"));
  GenerationRequest wrong_keys = Request(Tokens(10), 1);
  wrong_keys.block_keys = {{BlockKey{}}};
  EXPECT_EQ(refused(wrong_keys).code(), absl::StatusCode::kInvalidArgument);
}

TEST(EngineTest, AFullQueueRefusesAndTakesAgainWhenSomeoneLeaves) {
  Engine::Options options = SmallEngine();
  options.scheduler.max_num_seqs = 1;
  options.max_waiting = 1;
  Worker worker(options);
  auto [first_id, first] = worker.Submit(Request(Tokens(10), 2));
  worker.Submit(Request(Tokens(10), 2));
  Status status =
      worker.engine->Submit(Request(Tokens(10), 2), std::make_shared<Client>()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the limit is 2"));
  worker.StepUntil([&, c = first] { return c->result().has_value(); });
  worker.Submit(Request(Tokens(10), 2));
}

TEST(EngineTest, DrainRefusesNewRequestsAndFinishesThoseThatAreHere) {
  Worker worker(SmallEngine());
  GenerationRequest request = Request(Tokens(10), 20);
  auto [id, client] = worker.Submit(request);
  worker.engine->Drain();
  EXPECT_EQ(worker.engine->Submit(request, std::make_shared<Client>()).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_FALSE(worker.engine->WaitUntilIdle(TimePoint{}));
  worker.engine->Start();
  EXPECT_TRUE(worker.engine->WaitUntilIdle(TimePoint::max()));
  EXPECT_EQ(client->tokens(), Alone(request));
}

TEST(EngineTest, StopEndsEveryRequestOnceAlsoThoseNotTakenYet) {
  InMemoryBlockStore held;
  GatedStore store(&held);
  store.Close();
  Worker worker(SmallEngine(), &store);
  auto [first_id, first] = worker.Submit(Request(Tokens(100), 20));
  worker.engine->RunOnce(TimePoint{});
  auto [second_id, second] = worker.Submit(Request(Tokens(100), 20));
  worker.engine->Stop();
  worker.engine->Stop();
  for (auto& client : {first, second}) {
    ASSERT_TRUE(client->result());
    EXPECT_EQ(client->result()->status.code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(worker.engine->Submit(Request(Tokens(10), 2), first).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(EngineTest, NonFiniteLogitsEndThatRequestOnly) {
  Worker worker(SmallEngine());
  auto [bad_id, bad] = worker.Submit(Request(Tokens(10), 20));
  GenerationRequest request = Request(Tokens(10, 100), 20);
  auto [id, client] = worker.Submit(request);
  worker.model.before_collect = [](StepResult& result) {
    if (result.samples.size() == 2) result.samples[0].outcome = SampleOutcome::kNonFiniteLogits;
  };
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_EQ(bad->result()->reason, FinishReason::kError);
  EXPECT_EQ(bad->result()->status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(worker.Value("request_success_total{finished_reason=\"error\"}"), 1);
  EXPECT_EQ(client->tokens(), Alone(request));
}

TEST(EngineTest, AFailedStepEndsItsRequestsAndTheEngineGoesOn) {
  Worker worker(SmallEngine());
  worker.model.before_launch = [](const StepPlan&) { return absl::InternalError("broken"); };
  auto [bad_id, bad] = worker.Submit(Request(Tokens(10), 20));
  worker.engine->RunOnce(TimePoint{});
  ASSERT_TRUE(bad->result());
  EXPECT_EQ(bad->result()->status.code(), absl::StatusCode::kInternal);
  worker.model.before_launch = nullptr;
  GenerationRequest request = Request(Tokens(10), 20);
  auto [id, client] = worker.Submit(request);
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_EQ(client->tokens(), Alone(request)) << "nothing of the failed step may be reused";
  EXPECT_EQ(client->result()->usage.local, 0u);
}

}  // namespace
}  // namespace pagoda::worker
