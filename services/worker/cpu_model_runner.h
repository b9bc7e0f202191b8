// The CPU backend: forward pass and sampling on a team of threads, inside Launch.
//
// Concurrency: one thread (the engine's); the team works inside Launch.
#ifndef PAGODA_SERVICES_WORKER_CPU_MODEL_RUNNER_H_
#define PAGODA_SERVICES_WORKER_CPU_MODEL_RUNNER_H_

#include <memory>
#include <span>
#include <vector>

#include "services/worker/forward_pass.h"
#include "services/worker/model_runner.h"
#include "services/worker/plan_check.h"
#include "services/worker/sampler.h"

namespace pagoda::worker {

class CpuModelRunner final : public ModelRunner {
 public:
  using Options = ForwardPass::Options;

  // Errors: INVALID_ARGUMENT naming the limit or the part of the pool that does not fit the model;
  // RESOURCE_EXHAUSTED naming the buffer that could not be allocated.
  static StatusOr<std::unique_ptr<CpuModelRunner>> Create(const Options& options);

  StatusOr<Ticket> Launch(const StepPlan& plan) override;
  Status Collect(Ticket ticket, StepResult& result) override;

  // Everything that it holds beside the KV pool, the weights included.
  MemoryBudget budget() const;

  // [vocabulary] logits of sample `i` of the last launched step, processed; valid until the next
  // Launch.
  std::span<const float> logits(int32_t i) const {
    return {forward_->logits(i), static_cast<size_t>(options_.config.vocabulary)};
  }

 private:
  explicit CpuModelRunner(const Options& options) : options_(options) {}

  void Sample(const StepPlan& plan);
  SampledToken SampleRow(const StepPlan& plan, int64_t index, Sampler& sampler);

  const Options options_;
  PlanBounds bounds_;
  std::unique_ptr<ForwardPass> forward_;
  std::vector<Sampler> samplers_;      // one per thread of the team
  std::vector<SampledToken> sampled_;  // of the uncollected step
  uint64_t launched_ = 0;              // tickets are 1, 2, ...
  uint64_t collected_ = 0;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_CPU_MODEL_RUNNER_H_
