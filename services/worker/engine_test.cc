#include "services/worker/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <thread>

#include "common/kv/breaker_store.h"
#include "common/kv/testing/in_memory_block_store.h"
#include "services/worker/testing/fake_model.h"
#include "services/worker/testing/gated_store.h"
#include "services/worker/testing/test_sequences.h"

namespace pagoda::worker {
namespace {

using pagoda::testing::InMemoryBlockStore;
using testing::FakeModel;
using testing::GatedStore;
using ::testing::HasSubstr;
using testing::Request;
using testing::Tokens;

constexpr int32_t kBlock = 8;
constexpr uint32_t kVocabulary = 1000;

// A client: keeps what it hears.
class Client final : public TokenSink {
 public:
  explicit Client(size_t room = SIZE_MAX) : room_(room) {}

  bool HasRoom() override {
    MutexLock lock(mutex_);
    return tokens_.size() < room_;
  }
  void OnToken(TokenId token) override {
    MutexLock lock(mutex_);
    tokens_.push_back(token);
  }
  void OnFinish(const GenerationResult& result) override {
    MutexLock lock(mutex_);
    EXPECT_FALSE(result_) << "a request ends once";
    result_ = result;
    finished_.SignalAll();
  }

  void MakeRoom() {
    MutexLock lock(mutex_);
    room_ = SIZE_MAX;
  }
  std::vector<TokenId> tokens() {
    MutexLock lock(mutex_);
    return tokens_;
  }
  std::optional<GenerationResult> result() {
    MutexLock lock(mutex_);
    return result_;
  }
  GenerationResult Wait() {
    MutexLock lock(mutex_);
    while (!result_) finished_.Wait(mutex_);
    return *result_;
  }

 private:
  Mutex mutex_;
  CondVar finished_;
  size_t room_ ABSL_GUARDED_BY(mutex_);
  std::vector<TokenId> tokens_ ABSL_GUARDED_BY(mutex_);
  std::optional<GenerationResult> result_ ABSL_GUARDED_BY(mutex_);
};

Engine::Options SmallEngine(int32_t num_blocks = 64) {
  Engine::Options options;
  options.vocabulary_size = kVocabulary;
  options.max_model_len = 400;
  options.num_blocks = num_blocks;
  options.scheduler.block_tokens = kBlock;
  options.scheduler.max_num_batched_tokens = 64;
  options.poison_freed_blocks = true;
  return options;
}

// A worker without its service: a model, a pool, an engine and the way to a store.
struct Worker {
  explicit Worker(const Engine::Options& options, BlockStore* store = nullptr,
                  Clock* clock = SystemClock::Get(), const BreakerStore* breaker = nullptr)
      : model(options.num_blocks, options.scheduler.block_tokens, kVocabulary) {
    if (store != nullptr) {
      KvTransfer::Options transfer_options{.block_tokens = kBlock, .breaker = breaker};
      transfer = *KvTransfer::Make(transfer_options, store, &model, &metrics, clock);
    }
    engine.emplace(options, &model, &model, transfer.get(), &engine_metrics, clock);
  }

  std::pair<SequenceId, std::shared_ptr<Client>> Submit(GenerationRequest request,
                                                        size_t room = SIZE_MAX) {
    auto client = std::make_shared<Client>(room);
    StatusOr<SequenceId> id = engine->Submit(std::move(request), client);
    EXPECT_TRUE(id.ok()) << id.status();
    return {id.ok() ? *id : SequenceId{}, client};
  }
  // Steps until `done`. Without Start.
  template <typename Done>
  void StepUntil(Done done) {
    for (int i = 0; !done(); ++i) {
      ASSERT_LT(i, 10'000'000) << "no progress";
      engine->RunOnce(TimePoint{});
    }
  }
  double Value(const std::string& name) {
    std::string text = "\n" + metrics.Render();
    size_t at = text.find("\npagoda:" + name + " ");
    EXPECT_NE(at, std::string::npos) << name;
    return std::strtod(text.c_str() + at + name.size() + 9, nullptr);
  }
  void WaitForPushes() {
    while (Value("kv_push_pending_blocks") != 0) std::this_thread::yield();
  }

  Metrics metrics;
  EngineMetrics engine_metrics{&metrics};
  FakeModel model;
  std::unique_ptr<KvTransfer> transfer;
  std::optional<Engine> engine;
};

std::vector<TokenId> Alone(const GenerationRequest& request) {
  return FakeModel::Generate(request.prompt_ids, request.max_tokens, request.sampling.seed,
                             kVocabulary);
}

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
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
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

TEST(EngineTest, R68BlocksOnTheirWayToTheStoreArriveBeforeTheEngineStops) {
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

TEST(EngineTest, R26R27AFrozenStoreDelaysAPromptByATenthOfItsRecompute) {
  ExpectFrozenStoreDelaysBy(std::chrono::milliseconds(10), 960, {});
}

TEST(EngineTest, R26R27AFrozenStoreDelaysALongPromptBy50Milliseconds) {
  ExpectFrozenStoreDelaysBy(std::chrono::milliseconds(50), 96, {});
}

TEST(EngineTest, R26AnInsistingWorkerWaits50MillisecondsForALookup) {
  ExpectFrozenStoreDelaysBy(std::chrono::milliseconds(50), 1e6, StorePatience::Insisting());
}

// The store never answers. Three lookups wait for their deadlines; then nobody does.
TEST(EngineTest, R26R33WhileTheBreakerIsOpenNoRequestWaitsAndPushesDrop) {
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

TEST(EngineTest, R26ALoadIsWaitedForAsLongAsComputingItsTokensWouldTake) {
  ExpectLoadIsGivenUpAfter(std::chrono::milliseconds(100), 960, {});
}

TEST(EngineTest, R26AnInsistingWorkerWaitsFiveSecondsForALoad) {
  ExpectLoadIsGivenUpAfter(std::chrono::seconds(5), 960, StorePatience::Insisting());
}

TEST(EngineTest, FewerBlocksThanTheLookupPromisedIsANormalEvent) {
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
TEST(EngineTest, APreemptedRequestLoadsTheBlocksThatThePoolHasEvicted) {
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

TEST(EngineTest, R33APreemptedRequestAsksNothingWhileTheBreakerIsOpen) {
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

TEST(EngineTest, EveryMetricMovesAndPromptTokensAddUpBySource) {
  InMemoryBlockStore store;
  Worker worker(SmallEngine(), &store);
  GenerationRequest request = Request(Tokens(100), 10);
  for (int i = 0; i < 2; ++i) {
    auto [id, client] = worker.Submit(request);
    worker.StepUntil([&, c = client] { return c->tokens().size() == 5; });
    EXPECT_EQ(worker.Value("num_requests_running"), 1);
    EXPECT_GT(worker.Value("kv_cache_usage_perc"), 0);
    worker.StepUntil([&, c = client] { return c->result().has_value(); });
  }
  EXPECT_EQ(worker.Value("num_requests_running"), 0);
  EXPECT_EQ(worker.Value("kv_cache_usage_perc"), 0);
  EXPECT_EQ(worker.Value("prompt_tokens_total"), 200);
  EXPECT_EQ(worker.Value("prompt_tokens_by_source_total{source=\"computed\"}"), 104);
  EXPECT_EQ(worker.Value("prompt_tokens_by_source_total{source=\"local\"}"), 96);
  EXPECT_EQ(worker.Value("generation_tokens_total"), 20);
  EXPECT_EQ(worker.Value("request_success_total{finished_reason=\"length\"}"), 2);
  EXPECT_EQ(worker.Value("time_to_first_token_seconds_count"), 2);
  EXPECT_EQ(worker.Value("inter_token_latency_seconds_count"), 18);
  worker.WaitForPushes();
  EXPECT_EQ(worker.Value("kv_push_blocks_total{result=\"stored\"}"), 13);
  EXPECT_EQ(worker.engine->stats().steps, worker.model.launches);
}

TEST(EngineTest, R66EachSourceOfPromptTokensIsCounted) {
  Worker worker(SmallEngine());
  EngineMetrics metrics(&worker.metrics);
  metrics.CountPrompt({.prompt_tokens = 10, .computed = 1, .local = 2, .ram = 3, .disk = 4});
  EXPECT_EQ(worker.Value("prompt_tokens_by_source_total{source=\"computed\"}"), 1);
  EXPECT_EQ(worker.Value("prompt_tokens_by_source_total{source=\"local\"}"), 2);
  EXPECT_EQ(worker.Value("prompt_tokens_by_source_total{source=\"ram\"}"), 3);
  EXPECT_EQ(worker.Value("prompt_tokens_by_source_total{source=\"disk\"}"), 4);
}

TEST(EngineTest, RequestsThatWaitAreCounted) {
  Engine::Options options = SmallEngine();
  options.scheduler.max_num_seqs = 1;
  Worker worker(options);
  auto [first_id, first] = worker.Submit(Request(Tokens(10), 5));
  auto [second_id, second] = worker.Submit(Request(Tokens(10, 100), 5));
  worker.engine->RunOnce(TimePoint{});
  EXPECT_EQ(worker.Value("num_requests_waiting"), 1);
  EXPECT_EQ(worker.engine->stats().waiting, 1);
  EXPECT_EQ(worker.engine->stats().pending_prefill_tokens, 9);
  worker.StepUntil([&, c = second] { return c->result().has_value(); });
  EXPECT_EQ(worker.Value("num_requests_waiting"), 0);
}

TEST(EngineTest, PushedBlocksThatAreAcknowledgedAreInTheUsage) {
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
