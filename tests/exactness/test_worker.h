// A worker without its process: a CPU model runner on a poisoned pool, the engine, and the way to
// a store. Its clock stands still, so that no lookup and no load is ever given up for being late:
// which path a request takes is decided by the test alone.
//
// Concurrency: one thread; the engine has its own.
#ifndef PAGODA_TESTS_EXACTNESS_TEST_WORKER_H_
#define PAGODA_TESTS_EXACTNESS_TEST_WORKER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/metrics.h"
#include "common/kv/block_store.h"
#include "services/worker/cpu_model_runner.h"
#include "services/worker/engine.h"
#include "services/worker/kv_pool.h"
#include "services/worker/thread_team.h"
#include "tests/exactness/subject.h"

namespace pagoda::exactness {

class TestWorker {
 public:
  static constexpr int32_t kBlockTokens = 32;

  struct Settings {
    std::string isa = "auto";
    int threads = 0;      // 0: the subject's
    int32_t chunk = 512;  // most rows of a step; longer than any prompt
    bool chunked_prefill = true;
    int32_t num_blocks = 64;            // of the pool: more than all questions need
    std::shared_ptr<BlockStore> store;  // null: none
    bool load = true;                   // false: pushes only
  };

  struct Ask {
    const Question* question = nullptr;
    CacheScope scope = CacheScope::Tenant();
    std::vector<TokenId> emitted;  // by an earlier attempt, which this one continues
  };

  TestWorker(const Subject& subject, kernels::KvDtype kv, Settings settings);
  ~TestWorker();

  // Submits all at once (the first time before the engine runs, so that they meet in its first
  // step) and waits for their answers.
  std::vector<Answer> AskAll(std::vector<Ask> asks);
  Answer AskOne(Ask ask) { return AskAll({std::move(ask)})[0]; }

  // Until the store has answered every push.
  void WaitForPushes();

  // What it is and what it did.
  const char* isa() const { return ops_->isa; }
  int threads() const { return team_.size(); }
  worker::EngineStats stats() const { return engine_->stats(); }
  double preemptions();
  double pushes(const std::string& result);  // of kv_push_blocks_total

 private:
  class Client;

  void MakePool(const model::ModelConfig& config, kernels::KvDtype kv);
  void MakeRunner(const Subject& subject);
  void MakeEngine(const model::ModelConfig& config);
  worker::GenerationRequest RequestFor(const Ask& ask, std::shared_ptr<Client> client) const;

  const Settings settings_;
  ManualClock clock_;
  Metrics metrics_;
  worker::EngineMetrics engine_metrics_{&metrics_};
  worker::ThreadTeam team_;
  const kernels::Ops* ops_ = nullptr;
  std::unique_ptr<worker::KvPool> pool_;
  std::unique_ptr<worker::CpuModelRunner> runner_;
  Space space_;
  Namespace namespace_;
  std::unique_ptr<worker::KvTransfer> transfer_;
  std::optional<worker::Engine> engine_;
  bool started_ = false;
};

}  // namespace pagoda::exactness

#endif  // PAGODA_TESTS_EXACTNESS_TEST_WORKER_H_
