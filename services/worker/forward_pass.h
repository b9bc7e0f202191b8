// The llama forward pass of one step: embedding, layers, and logits for the rows that sample.
//
// Work is divided among the threads of a team so that no bit depends on it: linear layers by groups
// of 16 outputs, norms and rotations by rows, attention by (query tile, kv head). The numbers and
// their order are the kernels' (kernels/README.md). It trusts the plan (plan_check.h) and does not
// sample.
//
// Concurrency: one thread calls Run; the team works inside.
#ifndef PAGODA_SERVICES_WORKER_FORWARD_PASS_H_
#define PAGODA_SERVICES_WORKER_FORWARD_PASS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/model/model_config.h"
#include "kernels/ops.h"
#include "services/worker/kv_pool_view.h"
#include "services/worker/memory_budget.h"
#include "services/worker/model_weights.h"
#include "services/worker/step_plan.h"
#include "services/worker/thread_team.h"

namespace pagoda::worker {

class ForwardPass {
 public:
  struct Options {
    model::ModelConfig config;
    const ModelWeights* weights = nullptr;  // these four outlive the pass
    const kernels::Ops* ops = nullptr;
    ThreadTeam* team = nullptr;
    KvPoolView pool;
    StepLimits limits;
  };

  // Allocates every buffer for the limits. Errors: RESOURCE_EXHAUSTED naming the buffer.
  static StatusOr<std::unique_ptr<ForwardPass>> Create(const Options& options);

  // Activations and attention scratch of one pass, in bytes; logits apart.
  static MemoryBudget Budget(const model::ModelConfig& config, const StepLimits& limits,
                             int threads);

  // Writes K and V of every row into its slot and computes the logits of every sample.
  void Run(const StepPlan& plan);

  // [vocabulary] of sample `i` of the last Run; valid until the next.
  float* logits(int32_t i) const { return logits_ + int64_t{i} * options_.config.vocabulary; }

 private:
  // Rows of one slice that attend together.
  struct Tile {
    int32_t first_row = 0;
    int32_t num_rows = 0;
    int32_t first_block = 0;
  };

  explicit ForwardPass(const Options& options) : options_(options) {}

  void Prepare(const StepPlan& plan);
  void Work(int thread);
  void Embed(int thread);
  void Layer(int32_t index, int thread);
  void Attention(int32_t layer, int thread);
  void StoreKv(int32_t layer, int thread);
  void FeedForward(const LayerWeights& layer, int thread);
  void Head(int thread);
  void Norm(const float* weight, bool add_delta, int thread);
  // y = x * W^T for this thread's share of the row groups.
  void Linear(const kernels::PackedMatrix& matrix, const float* x, float* y, int32_t tokens,
              int thread);

  const Options options_;
  AlignedBuffer activations_;
  AlignedBuffer logits_memory_;
  AlignedBuffer scores_;
  // Views into activations_, one row per token of the step.
  float* x_ = nullptr;      // [rows][hidden] the residual stream, without the last block's output
  float* delta_ = nullptr;  // [rows][hidden] the last block's output
  float* h_ = nullptr;      // [rows][hidden] normalised
  float* q_ = nullptr;      // [rows][q_width]
  float* k_ = nullptr;      // [rows][kv_width]
  float* v_ = nullptr;      // [rows][kv_width]
  float* attended_ = nullptr;  // [rows][q_width]
  float* gate_ = nullptr;      // [rows][ffn]
  float* up_ = nullptr;        // [rows][ffn]
  float* cos_ = nullptr;       // [rows][rope_dim / 2]
  float* sin_ = nullptr;
  float* sampled_ = nullptr;    // [samples][hidden] rows that get logits
  float* logits_ = nullptr;     // [samples][vocabulary]
  int64_t scratch_floats_ = 0;  // of one thread in scores_

  std::vector<float> inv_freq_;
  std::vector<const uint8_t*> blocks_;  // the plan's block tables as addresses
  std::vector<int32_t> visible_;        // [rows] slots that the row sees
  std::vector<Tile> tiles_;
  std::vector<std::atomic<int32_t>> next_unit_;  // [layers] attention units are taken one by one
  const StepPlan* plan_ = nullptr;               // during Run
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_FORWARD_PASS_H_
