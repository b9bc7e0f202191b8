// A model on the CPU, ready to run: file, weights, KV pool, threads and runner, built from the
// options and checked once.
//
// Concurrency: immutable after Load but for what runner() and pool() say of themselves.
#ifndef PAGODA_SERVICES_WORKER_CPU_BACKEND_H_
#define PAGODA_SERVICES_WORKER_CPU_BACKEND_H_

#include <memory>

#include "common/base/status.h"
#include "common/kv/identity.h"
#include "common/model/model_config.h"
#include "services/worker/cpu_model_runner.h"
#include "services/worker/kv_pool.h"
#include "services/worker/model_weights.h"
#include "services/worker/thread_team.h"
#include "services/worker/worker_options.h"

namespace pagoda::model {
class GgufFile;
}

namespace pagoda::worker {

class CpuBackend {
 public:
  // Packs the weights, maps the pool, and runs the self-test (self_test.h). Errors name the flag,
  // the tensor or the instruction set.
  static StatusOr<std::unique_ptr<CpuBackend>> Load(const model::GgufFile& gguf,
                                                    const WorkerOptions& options);

  const model::ModelConfig& config() const { return config_; }
  CpuModelRunner& runner() { return *runner_; }
  KvPool& pool() { return *pool_; }
  int32_t num_blocks() const { return num_blocks_; }
  int32_t block_tokens() const { return pool_->layout().spec.block_tokens; }
  int32_t max_model_len() const { return max_model_len_; }
  const SpaceFields& space_fields() const { return space_fields_; }
  // Tokens per second, as the self-test saw it.
  double prefill_rate() const { return prefill_rate_; }

 private:
  CpuBackend() = default;

  Status LoadPool(const WorkerOptions& options);
  Status LoadRunner(const model::GgufFile& gguf, const WorkerOptions& options);

  model::ModelConfig config_;
  int32_t max_model_len_ = 0;
  int32_t num_blocks_ = 0;
  SpaceFields space_fields_;
  double prefill_rate_ = 0;
  // In the order in which each needs the ones before it.
  std::unique_ptr<ThreadTeam> team_;
  std::unique_ptr<KvPool> pool_;
  ModelWeights weights_;
  std::unique_ptr<CpuModelRunner> runner_;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_CPU_BACKEND_H_
