// A CPU model runner with all it needs, for tests that drive it by hand: a poisoned pool, shuffled
// blocks, sequences that are fed piece by piece.
//
// Concurrency: one thread.
#ifndef PAGODA_SERVICES_WORKER_TESTING_RUNNER_HARNESS_H_
#define PAGODA_SERVICES_WORKER_TESTING_RUNNER_HARNESS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/model/gguf.h"
#include "common/model/model_config.h"
#include "services/worker/cpu_model_runner.h"
#include "services/worker/kv_pool.h"
#include "services/worker/model_weights.h"
#include "services/worker/thread_team.h"

namespace pagoda::worker::testing {

class RunnerHarness {
 public:
  struct Settings {
    std::string isa = "auto";
    int threads = 1;
    kernels::KvDtype kv = kernels::KvDtype::kF32;
    int32_t block_tokens = 32;
    int32_t num_blocks = 64;
    int32_t max_tokens = 512;  // rows of a step
    int32_t max_samples = 512;
  };

  // A sequence and the blocks that it may fill.
  struct Sequence {
    std::vector<int32_t> blocks;
    int32_t length = 0;  // tokens computed or planned
  };

  // `gguf` outlives the harness. Aborts with the error's words when the runner cannot be made.
  RunnerHarness(const model::GgufFile& gguf, const Settings& settings);

  const model::ModelConfig& config() const { return config_; }
  CpuModelRunner& runner() { return *runner_; }
  KvPool& pool() { return *pool_; }
  StepPlan& plan() { return plan_; }

  // Takes blocks for `tokens` tokens from the pool, not in order.
  Sequence NewSequence(int32_t tokens);
  // Takes all blocks back and poisons them.
  void ReleaseAll();

  // Plans the next tokens of a sequence as one slice; every row of it samples when `all_rows`, else
  // the last one does.
  void Plan(Sequence& sequence, std::span<const uint32_t> tokens, bool all_rows,
            const SamplingParams& params = {});

  // Runs what was planned and forgets the plan.
  std::vector<SampledToken> Step();

  // The logits of each token, computed alone in chunks of `chunk` tokens.
  std::vector<std::vector<float>> LogitsOf(std::span<const uint32_t> tokens, int32_t chunk);

  // Greedy continuation of a prompt that is computed in chunks of `chunk` tokens.
  std::vector<uint32_t> Greedy(std::span<const uint32_t> prompt, int32_t steps, int32_t chunk);

 private:
  model::ModelConfig config_;
  ThreadTeam team_;
  ModelWeights weights_;
  std::unique_ptr<KvPool> pool_;
  std::unique_ptr<CpuModelRunner> runner_;
  StepPlan plan_;
  std::vector<int32_t> free_blocks_;
};

// `count` token ids below `vocabulary`, the same on every call.
std::vector<uint32_t> SomeTokens(int32_t count, uint32_t vocabulary, uint32_t salt = 0);

}  // namespace pagoda::worker::testing

#endif  // PAGODA_SERVICES_WORKER_TESTING_RUNNER_HARNESS_H_
