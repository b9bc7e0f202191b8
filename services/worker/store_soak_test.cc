// A soak of two engines with tiny pools behind a store that fails in every way it can. Whatever the
// store does, each request gets the tokens of a lone run, everybody gets on, and nothing is held at
// the end.
//
// Time is a ManualClock's and every choice comes from one seed, so that equal seeds make equal
// runs. A failing case prints its seed; PAGODA_TEST_SEED=N runs that one alone. PAGODA_TEST_SOAKS=N
// sets how many run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>

#include "common/base/bounded_queue.h"
#include "common/base/testing/metric_value.h"
#include "common/kv/testing/delayed_store.h"
#include "common/kv/testing/faulty_store.h"
#include "common/kv/testing/in_memory_block_store.h"
#include "services/worker/engine.h"
#include "services/worker/testing/engine_harness.h"
#include "services/worker/testing/fake_model.h"
#include "services/worker/testing/test_sequences.h"

namespace pagoda::worker {
namespace {

using pagoda::testing::DelayedStore;
using pagoda::testing::Fault;
using pagoda::testing::FaultyStore;
using pagoda::testing::InMemoryBlockStore;
using pagoda::testing::RandomFaults;
using testing::Client;
using testing::FakeModel;
using testing::Request;

constexpr int kSoaks = 60;
constexpr int kRequests = 250;     // of a soak
constexpr int kTurnsMax = 60'000;  // a soak that needs more makes no progress
constexpr int kWeatherTurns = 50;
constexpr int32_t kBlock = 8;
constexpr int32_t kPoolBlocks = 24;
constexpr size_t kStoreBlocks = 60;
constexpr uint32_t kVocabulary = 50;

// What the store is like for a while.
struct Weather {
  std::map<Fault, double> rates;
  int delay_ms_max = 2;
};

const std::vector<Weather>& Weathers() {
  static const std::vector<Weather> weathers = {
      {{}},
      {{{Fault::kCorrupt, 0.15},
        {Fault::kTruncate, 0.1},
        {Fault::kForeign, 0.1},
        {Fault::kOtherTenant, 0.1}}},
      {{{Fault::kFail, 0.3}}},
      {{{Fault::kMissing, 0.2}, {Fault::kPromise, 0.3}}},
      {{{Fault::kNoRoom, 0.7}}},
      {{}, 60},         // slow: about as long as a lookup may take
      {{}, 1'000'000},  // frozen
  };
  return weathers;
}

// Other bytes under valid checksums, which only a recheck can see.
const Weather kDivergentWeather = {{{Fault::kDivergent, 0.05}}};

// Passes everything on; says when a lookup of nothing has come, which is how the soak knows that
// all calls before it have.
class Entrance final : public BlockStore {
 public:
  explicit Entrance(std::shared_ptr<BlockStore> inner) : inner_(std::move(inner)) {}

  void WaitForEmptyLookup() { seen_.Pop(); }

  void FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                   FindCallback done) override {
    if (!refs.empty()) return inner_->FindMissing(context, std::move(refs), std::move(done));
    done({});
    seen_.TryPush(true);
  }
  void Get(const CallContext& context, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) override {
    inner_->Get(context, std::move(refs), std::move(sink));
  }
  void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) override {
    inner_->Put(context, std::move(blocks), std::move(done));
  }
  void ReportCorrupt(const CorruptReport& report) override { inner_->ReportCorrupt(report); }

 private:
  const std::shared_ptr<BlockStore> inner_;
  BoundedQueue<bool> seen_{1};
};

struct Worker {
  Worker(uint64_t instance, uint32_t recheck_one_in, std::shared_ptr<BlockStore> store,
         Clock* clock)
      : entrance(std::move(store)) {
    Engine::Options options;
    options.vocabulary_size = kVocabulary;
    options.max_model_len = 160;
    options.num_blocks = kPoolBlocks;
    options.scheduler.block_tokens = kBlock;
    options.scheduler.max_num_batched_tokens = 64;
    options.recheck = {.one_in = recheck_one_in, .seed = instance};
    options.poison_freed_blocks = true;
    transfer = *KvTransfer::Make({.producer_instance = instance,
                                  .block_tokens = kBlock,
                                  .max_staging_bytes = 12 * model.block_bytes()},
                                 &entrance, &model, &metrics, clock);
    engine.emplace(options, &model, &model, transfer.get(), &engine_metrics, clock);
  }

  // Until every call that the engine made has come to the store.
  void Flush() {
    transfer->Lookup(SequenceId{0}, {}, {}, 0, TimePoint::max());
    entrance.WaitForEmptyLookup();
  }
  double Value(const std::string& series) {
    return pagoda::testing::MetricValue(metrics, series).value_or(-1);
  }

  Metrics metrics;
  EngineMetrics engine_metrics{&metrics};
  FakeModel model{kPoolBlocks, kBlock, kVocabulary};
  Entrance entrance;
  std::unique_ptr<KvTransfer> transfer;
  std::optional<Engine> engine;
};

// What happened in all soaks: shows that they went where they were meant to go.
using Totals = std::map<std::string, double>;

class Soak {
 public:
  // `divergent`: the store brings wrong bytes, and the workers recheck all that they load.
  Soak(uint64_t seed, bool divergent, Totals* totals)
      : random_(seed), divergent_(divergent), totals_(totals) {}
  // The engines wait for every call to end, and by then nobody advances the clock.
  ~Soak() {
    delayed_->SetDelay([] { return Duration(0); });
    delayed_->Settle();
  }

  void Run() {
    int arrivals = kRequests;
    for (int turn = 0; arrivals > 0 || !live_.empty(); ++turn) {
      ASSERT_LT(turn, kTurnsMax) << "no progress";
      if (turn % kWeatherTurns == 0) ChangeWeather();
      while (arrivals > 0 && (live_.empty() || (live_.size() < 12 && Chance(0.3)))) {
        Arrive();
        --arrivals;
      }
      if (!live_.empty() && Chance(0.01)) CancelOne();
      if (Chance(0.2)) Evict();
      ASSERT_NO_FATAL_FAILURE(Turn());
    }
    ASSERT_NO_FATAL_FAILURE(CheckNothingIsHeld());
    Count();
  }

 private:
  struct Running {
    Worker* worker;
    SequenceId id;
    GenerationRequest request;
    std::shared_ptr<Client> client;
  };

  int Uniform(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  bool Chance(double p) { return std::bernoulli_distribution(p)(random_); }

  void ChangeWeather() {
    const Weather& weather =
        divergent_ ? kDivergentWeather : Weathers()[Uniform(0, Weathers().size() - 1)];
    auto random = std::make_shared<std::mt19937_64>(random_());
    delayed_->SetDelay([random, limit = weather.delay_ms_max]() -> Duration {
      return std::chrono::milliseconds((*random)() % limit) + Duration(1);
    });
    faulty_->SetChooser(RandomFaults(random_(), weather.rates));
  }

  // A few families of prompts, so that there is something to share.
  std::vector<TokenId> Prompt() {
    std::mt19937 family(Uniform(0, 5));
    std::vector<TokenId> prompt(Uniform(1, 110));
    for (TokenId& token : prompt) token = family() % kVocabulary;
    if (Chance(0.5)) prompt.back() = Uniform(0, kVocabulary - 1);
    return prompt;
  }

  void Arrive() {
    GenerationRequest request = Request(Prompt(), Uniform(1, 30));
    request.sampling.seed = Uniform(0, 2);
    request.priority = Uniform(0, 1);
    Worker& worker = workers_[Uniform(0, 1)];
    auto client = std::make_shared<Client>();
    StatusOr<SequenceId> id = worker.engine->Submit(request, client);
    ASSERT_TRUE(id.ok()) << id.status();
    live_.push_back({&worker, *id, std::move(request), std::move(client)});
  }

  void CancelOne() {
    const Running& running = live_[Uniform(0, live_.size() - 1)];
    running.worker->engine->Cancel(running.id);
  }

  // The store drops a block, whoever was promised it.
  void Evict() {
    BlockKeyChain chain({}, {}, CacheScope::Tenant(), kBlock);
    chain.Append(Prompt());
    if (chain.refs().empty()) return;
    held_->Erase(chain.refs()[Uniform(0, chain.refs().size() - 1)].key);
  }

  void Turn() {
    for (Worker& worker : workers_) {
      worker.engine->RunOnce(TimePoint{});
      worker.Flush();
      ASSERT_TRUE(worker.engine->CheckIntegrity().ok()) << worker.engine->CheckIntegrity();
    }
    clock_.Advance(std::chrono::milliseconds(1));
    delayed_->Settle();
    std::erase_if(live_, [this](const Running& running) {
      if (running.client->result()) CheckAnswer(running);
      return running.client->result().has_value();
    });
  }

  void CheckAnswer(const Running& running) {
    const GenerationRequest& request = running.request;
    const GenerationResult result = *running.client->result();
    (*totals_)[FinishReasonName(result.reason)] += 1;
    std::vector<TokenId> right = FakeModel::Generate(
        request.prompt_ids, running.client->tokens().size(), request.sampling.seed, kVocabulary);
    if (divergent_) {
      (*totals_)["data loss"] += absl::IsDataLoss(result.status);
      (*totals_)["wrong tokens"] += running.client->tokens() != right;
      EXPECT_TRUE(result.status.ok() || absl::IsDataLoss(result.status) ||
                  absl::IsCancelled(result.status))
          << result.status;
      return;
    }
    EXPECT_EQ(running.client->tokens(), right);
    if (result.reason == FinishReason::kCancelled) return;
    EXPECT_EQ(result.reason, FinishReason::kLength) << result.status;
    EXPECT_EQ(running.client->tokens().size(), request.max_tokens);
    const GenerationUsage& usage = result.usage;
    EXPECT_EQ(usage.computed + usage.local + usage.ram, usage.prompt_tokens);
    (*totals_)["ram tokens"] += usage.ram;
  }

  // The store thaws; then every call ends, and every block of both pools can be had again.
  void CheckNothingIsHeld() {
    delayed_->SetDelay([] { return Duration(1); });
    faulty_->SetChooser(RandomFaults(0, {}));
    for (int turn = 0; turn < 3; ++turn) ASSERT_NO_FATAL_FAILURE(Turn());
    EXPECT_EQ(delayed_->num_waiting(), 0u);
    for (Worker& worker : workers_) {
      EXPECT_EQ(worker.engine->stats().free_blocks, kPoolBlocks) << "a block is still held";
      EXPECT_EQ(worker.Value("kv_push_pending_blocks"), 0);
    }
  }

  void Count() {
    for (Worker& worker : workers_) {
      for (const char* result : {"loaded", "missing", "corrupt", "refused", "failed"}) {
        std::string name = "kv_load_blocks_total{result=\"" + std::string(result) + "\"}";
        (*totals_)[std::string("load ") + result] += worker.Value(name);
      }
      for (const char* result : {"stored", "have", "no_room", "failed", "dropped"}) {
        std::string name = "kv_push_blocks_total{result=\"" + std::string(result) + "\"}";
        (*totals_)[std::string("push ") + result] += worker.Value(name);
      }
      for (const char* result : {"ok", "mismatch", "dropped"}) {
        std::string name = "kv_recheck_blocks_total{result=\"" + std::string(result) + "\"}";
        (*totals_)[std::string("recheck ") + result] += worker.Value(name);
      }
      (*totals_)["preempted"] += worker.Value("num_preemptions_total");
    }
  }

  std::mt19937_64 random_;
  const bool divergent_;
  Totals* const totals_;
  ManualClock clock_;
  std::shared_ptr<InMemoryBlockStore> held_ = std::make_shared<InMemoryBlockStore>(
      kStoreBlocks * kBlock * sizeof(FakeModel::Slot), &clock_);
  std::shared_ptr<FaultyStore> faulty_ = std::make_shared<FaultyStore>(held_, RandomFaults(0, {}));
  // The outermost: what answers at once would do so while an engine steps, sooner or later.
  std::shared_ptr<DelayedStore> delayed_ =
      std::make_shared<DelayedStore>(faulty_, &clock_, [] { return Duration(1); });
  Worker workers_[2] = {Worker(1, divergent_, delayed_, &clock_),
                        Worker(2, divergent_, delayed_, &clock_)};
  std::vector<Running> live_;
};

Totals RunSoak(uint64_t seed, bool divergent = false) {
  Totals totals;
  SCOPED_TRACE("PAGODA_TEST_SEED=" + std::to_string(seed));
  Soak(seed, divergent, &totals).Run();
  return totals;
}

std::string Text(const Totals& totals) {
  std::ostringstream text;
  for (const auto& [name, value] : totals) text << name << ' ' << value << ", ";
  return text.str();
}

TEST(StoreSoakTest, R2R27R29R31NoFaultOfTheStoreChangesATokenOrKeepsABlock) {
  const char* one = std::getenv("PAGODA_TEST_SEED");
  const char* count = std::getenv("PAGODA_TEST_SOAKS");
  uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 1;
  uint64_t last = one != nullptr     ? first
                  : count != nullptr ? std::strtoull(count, nullptr, 10)
                                     : kSoaks;
  Totals totals;
  for (uint64_t seed = first; seed <= last; ++seed) {
    for (const auto& [name, value] : RunSoak(seed)) totals[name] += value;
    ASSERT_FALSE(HasFailure());
  }
  printf("%s\n", Text(totals).c_str());
  if (one != nullptr) return;
  for (const char* name :
       {"length", "cancelled", "preempted", "ram tokens", "load loaded", "load missing",
        "load corrupt", "load refused", "load failed", "push stored", "push have", "push no_room",
        "push failed", "push dropped"}) {
    EXPECT_GT(totals[name], 0) << name << " never happened";
  }
}

TEST(StoreSoakTest, WrongBytesUnderValidChecksumsAreFoundByRechecksAndKeepNoBlock) {
  Totals totals;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const auto& [name, value] : RunSoak(seed, true)) totals[name] += value;
    ASSERT_FALSE(HasFailure());
  }
  printf("%s\n", Text(totals).c_str());
  for (const char* name : {"length", "recheck ok", "recheck mismatch", "recheck dropped",
                           "data loss", "load refused"}) {
    EXPECT_GT(totals[name], 0) << name << " never happened";
  }
}

TEST(StoreSoakTest, EqualSeedsMakeEqualRuns) {
  for (uint64_t seed : {1, 2, 3}) EXPECT_EQ(Text(RunSoak(seed)), Text(RunSoak(seed)));
  EXPECT_NE(Text(RunSoak(1)), Text(RunSoak(2)));
}

}  // namespace
}  // namespace pagoda::worker
