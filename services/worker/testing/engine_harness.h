// A worker without its service, and a client, for tests of the engine.
//
// Concurrency: a Client is called from any thread, a Worker from one.
#ifndef PAGODA_SERVICES_WORKER_TESTING_ENGINE_HARNESS_H_
#define PAGODA_SERVICES_WORKER_TESTING_ENGINE_HARNESS_H_

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/testing/metric_value.h"
#include "common/kv/breaker_store.h"
#include "services/worker/engine.h"
#include "services/worker/testing/fake_model.h"

namespace pagoda::worker::testing {

inline constexpr int32_t kBlock = 8;
inline constexpr uint32_t kVocabulary = 1000;

// Keeps what it hears.
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

inline Engine::Options SmallEngine(int32_t num_blocks = 64) {
  Engine::Options options;
  options.vocabulary_size = kVocabulary;
  options.max_model_len = 400;
  options.num_blocks = num_blocks;
  options.scheduler.block_tokens = kBlock;
  options.scheduler.max_num_batched_tokens = 64;
  options.poison_freed_blocks = true;
  return options;
}

// A model, a pool, an engine and the way to a store.
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
  double Value(const std::string& series) {
    std::optional<double> value = pagoda::testing::MetricValue(metrics, series);
    EXPECT_TRUE(value) << series;
    return value.value_or(0);
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

// What a lone run gives.
inline std::vector<TokenId> Alone(const GenerationRequest& request) {
  return FakeModel::Generate(request.prompt_ids, request.max_tokens, request.sampling.seed,
                             kVocabulary);
}

}  // namespace pagoda::worker::testing

#endif  // PAGODA_SERVICES_WORKER_TESTING_ENGINE_HARNESS_H_
