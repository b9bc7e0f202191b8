// The engine and a store: slow, frozen, dead, or with less than it promised.
#include <gtest/gtest.h>

#include <thread>

#include "common/kv/breaker_store.h"
#include "common/kv/testing/in_memory_block_store.h"
#include "services/worker/engine.h"
#include "services/worker/testing/engine_harness.h"
#include "services/worker/testing/gated_store.h"
#include "services/worker/testing/test_sequences.h"

namespace pagoda::worker {
namespace {

using pagoda::testing::InMemoryBlockStore;
using testing::Alone;
using testing::GatedStore;
using testing::kBlock;
using testing::Request;
using testing::SmallEngine;
using testing::Tokens;
using testing::Worker;

TEST(EngineStoreTest, R68BlocksOnTheirWayToTheStoreArriveBeforeTheEngineStops) {
  InMemoryBlockStore held;
  GatedStore store(&held);
  store.Close();
  Worker worker(SmallEngine(), &store);
  auto [id, client] = worker.Submit(Request(Tokens(3 * kBlock), 20));
  worker.StepUntil([&, c = client] { return !c->tokens().empty(); });
  // The store answers some time after the requests have ended.
  std::thread opener([&, c = client] {
    c->Wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    store.Open();
  });
  worker.engine->Stop(std::chrono::hours(24));
  EXPECT_EQ(client->result()->status.code(), absl::StatusCode::kUnavailable);
  opener.join();
  EXPECT_GE(worker.Value("kv_push_blocks_total{result=\"stored\"}"), 3);
}

// A request for 12 full blocks waits so long for a store that never answers.
void ExpectFrozenStoreDelaysBy(Duration delay, double prefill_tokens_per_second,
                               const StorePatience& patience) {
  ManualClock clock;
  InMemoryBlockStore held;
  GatedStore store(&held);
  store.Close();
  Engine::Options options = SmallEngine();
  options.prefill_tokens_per_second = prefill_tokens_per_second;
  options.store_patience = patience;
  Worker worker(options, &store, &clock);
  GenerationRequest request = Request(Tokens(100), 5);
  auto [id, client] = worker.Submit(request);
  EXPECT_FALSE(worker.engine->RunOnce(TimePoint{}));
  clock.Advance(delay - std::chrono::microseconds(1));
  EXPECT_FALSE(worker.engine->RunOnce(TimePoint{}));
  clock.Advance(std::chrono::microseconds(1));
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_EQ(client->tokens(), Alone(request));
  store.FailWaiting(absl::UnavailableError("frozen"));
}

TEST(EngineStoreTest, R26R27AFrozenStoreDelaysAPromptByATenthOfItsRecompute) {
  ExpectFrozenStoreDelaysBy(std::chrono::milliseconds(10), 960, {});
}

TEST(EngineStoreTest, R26R27AFrozenStoreDelaysALongPromptBy50Milliseconds) {
  ExpectFrozenStoreDelaysBy(std::chrono::milliseconds(50), 96, {});
}

TEST(EngineStoreTest, R26AnInsistingWorkerWaits50MillisecondsForALookup) {
  ExpectFrozenStoreDelaysBy(std::chrono::milliseconds(50), 1e6, StorePatience::Insisting());
}

// The store never answers. Three lookups wait for their deadlines; then nobody does.
TEST(EngineStoreTest, R26R33WhileTheBreakerIsOpenNoRequestWaitsAndPushesDrop) {
  ManualClock clock;
  InMemoryBlockStore held;
  GatedStore frozen(&held);
  frozen.Close();
  BreakerStore breaker(&frozen, {.clock = &clock});
  Worker worker(SmallEngine(), &breaker, &clock, &breaker);
  // The gate knows no deadlines: what a real store would answer, the test does.
  for (int i = 0; i < 3; ++i) {
    worker.transfer->Lookup(SequenceId{1000}, Request(Tokens(9), 1), {}, 0, TimePoint::max());
  }
  frozen.WaitForCalls(3);
  frozen.FailWaiting(absl::DeadlineExceededError("frozen"));
  ASSERT_FALSE(breaker.closed());
  GenerationRequest request = Request(Tokens(100), 5);
  auto [id, client] = worker.Submit(request);
  EXPECT_TRUE(worker.engine->RunOnce(TimePoint{})) << "the first step computes";
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_EQ(client->tokens(), Alone(request));
  EXPECT_EQ(worker.Value("kv_push_blocks_total{result=\"dropped\"}"), 13);
  EXPECT_EQ(worker.Value("kv_push_pending_blocks"), 0);
  EXPECT_EQ(frozen.num_waiting(), 0u);
  EXPECT_EQ(worker.Value("kv_deadline_misses_total{call=\"lookup\"}"), 3);
  // The pause is over: the next request waits no more than the ones before, and a probe goes out.
  clock.Advance(std::chrono::seconds(1));
  frozen.Open();
  auto [next_id, next] = worker.Submit(Request(Tokens(100, 300), 5));
  worker.StepUntil([&, c = next] { return c->result().has_value(); });
  while (!breaker.closed()) std::this_thread::yield();
  GenerationRequest last = Request(Tokens(100, 600), 5);
  auto [last_id, last_client] = worker.Submit(last);
  worker.StepUntil([&, c = last_client] { return c->result().has_value(); });
  worker.WaitForPushes();
  EXPECT_GE(worker.Value("kv_push_blocks_total{result=\"stored\"}"), 13);
}

// A load of 12 blocks that never comes is given up after `delay`.
void ExpectLoadIsGivenUpAfter(Duration delay, double prefill_tokens_per_second,
                              const StorePatience& patience) {
  ManualClock clock;
  InMemoryBlockStore held;
  GatedStore store(&held);
  GenerationRequest request = Request(Tokens(100), 5);
  {
    Worker other(SmallEngine(), &store);
    auto [id, client] = other.Submit(request);
    other.StepUntil([&, c = client] { return c->result().has_value(); });
    other.WaitForPushes();
  }
  Engine::Options options = SmallEngine();
  options.prefill_tokens_per_second = prefill_tokens_per_second;
  options.store_patience = patience;
  Worker worker(options, &store, &clock);
  store.Close();
  auto [id, client] = worker.Submit(request);
  worker.engine->RunOnce(TimePoint{});
  store.WaitForCalls(1);
  store.Open();
  store.Close();  // the lookup passed; the load will not
  worker.StepUntil([&] { return worker.engine->stats().running == 1; });
  store.WaitForCalls(1);
  clock.Advance(delay - std::chrono::microseconds(1));
  EXPECT_FALSE(worker.engine->RunOnce(TimePoint{}));
  clock.Advance(std::chrono::microseconds(1));
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_EQ(client->tokens(), Alone(request));
  EXPECT_EQ(client->result()->usage.computed, 100u);
  // The store lets go in its own time.
  while (worker.Value("kv_load_blocks_total{result=\"failed\"}") < 12) std::this_thread::yield();
  store.Open();
}

TEST(EngineStoreTest, R26R34ALoadIsWaitedForAsLongAsComputingItsTokensWouldTake) {
  ExpectLoadIsGivenUpAfter(std::chrono::milliseconds(100), 960, {});
}

TEST(EngineStoreTest, R26R34AnInsistingWorkerWaitsFiveSecondsForALoad) {
  ExpectLoadIsGivenUpAfter(std::chrono::seconds(5), 960, StorePatience::Insisting());
}

TEST(EngineStoreTest, FewerBlocksThanTheLookupPromisedIsANormalEvent) {
  InMemoryBlockStore held;
  GatedStore store(&held);
  ManualClock clock;  // stands still: no wait is ever over
  GenerationRequest request = Request(Tokens(100), 5);
  Worker first(SmallEngine(), &store);
  auto [first_id, first_client] = first.Submit(request);
  first.StepUntil([&, c = first_client] { return c->result().has_value(); });
  first.WaitForPushes();
  Worker worker(SmallEngine(), &store, &clock);
  store.Close();
  auto [id, client] = worker.Submit(request);
  worker.engine->RunOnce(TimePoint{});
  store.WaitForCalls(1);
  store.Open();
  auto keys = testing::MakeSequence(1, request, kBlock);
  held.Erase(keys->refs()[3].key);  // between lookup and load, or before: either way it is missing
  held.Corrupt(keys->refs()[7].key);
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_EQ(client->tokens(), Alone(request));
  EXPECT_EQ(client->result()->usage.ram, 80u);
  EXPECT_EQ(client->result()->usage.computed, 20u);
}

// Two requests fill the pool; the younger loses its blocks, and the elder needs nearly all of them.
TEST(EngineStoreTest, APreemptedRequestLoadsTheBlocksThatThePoolHasEvicted) {
  InMemoryBlockStore held;
  GatedStore store(&held);
  ManualClock clock;  // stands still: no wait is ever over
  Worker worker(SmallEngine(14), &store, &clock);
  GenerationRequest elder = Request(Tokens(40), 60);  // ends with 13 of 14 blocks
  GenerationRequest younger = Request(Tokens(40, 500), 30);
  store.Close();
  auto [elder_id, elder_client] = worker.Submit(elder);
  auto [younger_id, younger_client] = worker.Submit(younger);
  worker.engine->RunOnce(TimePoint{});
  store.WaitForCalls(2);
  store.Open();  // both are answered: both begin in the same step
  worker.StepUntil([&, c = younger_client] { return c->result().has_value(); });
  EXPECT_EQ(elder_client->tokens(), Alone(elder));
  EXPECT_EQ(younger_client->tokens(), Alone(younger));
  EXPECT_EQ(worker.Value("num_preemptions_total"), 1);
  EXPECT_GE(worker.Value("kv_load_blocks_total{result=\"loaded\"}"), 5);
  EXPECT_LE(younger_client->result()->usage.recomputed, 2u * kBlock);
}

TEST(EngineStoreTest, R33APreemptedRequestAsksNothingWhileTheBreakerIsOpen) {
  ManualClock clock;
  InMemoryBlockStore held;
  GatedStore dead(&held);
  dead.Close();
  BreakerStore breaker(&dead, {.clock = &clock});
  Worker worker(SmallEngine(14), &breaker, &clock, &breaker);
  for (int i = 0; i < 3; ++i) {
    worker.transfer->Lookup(SequenceId{1000}, Request(Tokens(9), 1), {}, 0, TimePoint::max());
  }
  dead.WaitForCalls(3);
  dead.FailWaiting(absl::UnavailableError("dead"));
  while (breaker.closed()) std::this_thread::yield();
  auto [elder_id, elder_client] = worker.Submit(Request(Tokens(40), 60));
  auto [younger_id, younger_client] = worker.Submit(Request(Tokens(40, 500), 30));
  worker.StepUntil([&, c = younger_client] { return c->result().has_value(); });
  EXPECT_EQ(worker.Value("num_preemptions_total"), 1);
  EXPECT_EQ(dead.num_waiting(), 0u);
}

TEST(EngineStoreTest, PushedBlocksThatAreAcknowledgedAreInTheUsage) {
  InMemoryBlockStore store;
  Worker worker(SmallEngine(), &store);
  auto [id, client] = worker.Submit(Request(Tokens(32), 9));
  worker.StepUntil([&, c = client] { return c->tokens().size() == 8; });
  worker.WaitForPushes();
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_GE(client->result()->usage.pushed, 4u);
  EXPECT_EQ(worker.Value("num_preemptions_total"), 0);
}

}  // namespace
}  // namespace pagoda::worker
