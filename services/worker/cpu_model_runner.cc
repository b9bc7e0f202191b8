#include "services/worker/cpu_model_runner.h"

#include <string>

#include "kernels/rope/rope_table.h"

namespace pagoda::worker {
namespace {

// Bounds the buffers of one step to what a server with this many cores could use; also keeps every
// index of an activation below 2^63 by far.
constexpr int32_t kMaxBatchedTokens = 1 << 16;
constexpr int32_t kMaxSeqs = 1 << 14;
constexpr int32_t kMaxBlocksPerSeq = 1 << 20;

Status CheckLimit(const char* name, int64_t value, int64_t limit) {
  if (value >= 1 && value <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string(name) + " = " + std::to_string(value) +
                                    " is not in [1, " + std::to_string(limit) + "]");
}

Status CheckEqual(const char* name, int64_t pool, int64_t model) {
  if (pool == model) return absl::OkStatus();
  return absl::InvalidArgumentError("KV pool: " + std::string(name) + " = " + std::to_string(pool) +
                                    ", the model has " + std::to_string(model));
}

Status CheckPool(const KvPoolView& pool, const model::ModelConfig& config) {
  const kernels::KvSpec& spec = pool.layout->spec;
  PAGODA_RETURN_IF_ERROR(CheckEqual("num_layers", spec.num_layers, config.num_layers));
  PAGODA_RETURN_IF_ERROR(CheckEqual("num_kv_heads", spec.num_kv_heads, config.num_kv_heads));
  PAGODA_RETURN_IF_ERROR(CheckEqual("head_dim", spec.head_dim, config.head_dim));
  PAGODA_RETURN_IF_ERROR(CheckLimit("KV pool: num_blocks", pool.num_blocks, INT32_MAX));
  const bool aligned = reinterpret_cast<uintptr_t>(pool.base) % kernels::kKvAlign == 0 &&
                       pool.block_stride % kernels::kKvAlign == 0;
  if (pool.base == nullptr || !aligned || pool.block_stride < pool.layout->block_bytes) {
    return absl::InvalidArgumentError(
        "KV pool: base and block_stride must be 64-byte aligned and the stride " +
        std::to_string(pool.block_stride) + " at least " +
        std::to_string(pool.layout->block_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<CpuModelRunner>> CpuModelRunner::Create(const Options& options) {
  const StepLimits& limits = options.limits;
  PAGODA_RETURN_IF_ERROR(
      CheckLimit("max_num_batched_tokens", limits.max_num_batched_tokens, kMaxBatchedTokens));
  PAGODA_RETURN_IF_ERROR(CheckLimit("max_num_seqs", limits.max_num_seqs, kMaxSeqs));
  PAGODA_RETURN_IF_ERROR(
      CheckLimit("max_blocks_per_seq", limits.max_blocks_per_seq, kMaxBlocksPerSeq));
  PAGODA_RETURN_IF_ERROR(CheckPool(options.pool, options.config));

  std::unique_ptr<CpuModelRunner> runner(new CpuModelRunner(options));
  runner->bounds_ = {.limits = limits,
                     .vocabulary = static_cast<uint32_t>(options.config.vocabulary),
                     .num_blocks = options.pool.num_blocks,
                     .block_tokens = options.pool.layout->spec.block_tokens,
                     .max_position = kernels::kMaxRopePosition};
  PAGODA_ASSIGN_OR_RETURN(runner->forward_, ForwardPass::Create(options));
  for (int i = 0; i < options.team->size(); ++i) {
    runner->samplers_.emplace_back(*options.ops, options.config.vocabulary);
  }
  runner->sampled_.reserve(limits.max_num_seqs);
  return runner;
}

MemoryBudget CpuModelRunner::budget() const {
  const int threads = options_.team->size();
  MemoryBudget budget = ForwardPass::Budget(options_.config, options_.limits, threads);
  budget.weights = options_.weights->bytes();
  budget.sampler = threads * Sampler::ScratchBytes(options_.config.vocabulary);
  return budget;
}

StatusOr<Ticket> CpuModelRunner::Launch(const StepPlan& plan) {
  if (launched_ != collected_) {
    return absl::ResourceExhaustedError("a launched step has not been collected");
  }
  PAGODA_RETURN_IF_ERROR(CheckPlan(plan, bounds_));
  forward_->Run(plan);
  Sample(plan);
  return Ticket{++launched_};
}

void CpuModelRunner::Sample(const StepPlan& plan) {
  sampled_.assign(plan.num_samples, {});
  if (plan.num_samples == 0) return;
  options_.team->Run([&](int thread) {
    const Range share = PartOf(plan.num_samples, options_.team->size(), thread);
    for (int64_t i = share.begin; i < share.end; ++i) {
      sampled_[i] = SampleRow(plan, i, samplers_[thread]);
    }
  });
}

SampledToken CpuModelRunner::SampleRow(const StepPlan& plan, int64_t index, Sampler& sampler) {
  const std::span<float> logits(forward_->logits(index),
                                static_cast<size_t>(options_.config.vocabulary));
  if (!options_.ops->all_finite(logits.data(), std::ssize(logits))) {
    return {.outcome = SampleOutcome::kNonFiniteLogits};
  }
  const PlanSample& sample = plan.samples[index];
  if (sample.mask != nullptr) sample.mask->Apply(logits);
  if (sample.penalties != nullptr) sample.penalties->Apply(logits);
  return sampler.Sample(logits, sample.params, plan.positions[sample.row] + 1);
}

Status CpuModelRunner::Collect(Ticket ticket, StepResult& result) {
  if (ticket.id != collected_ + 1 || ticket.id != launched_) {
    return absl::FailedPreconditionError("ticket " + std::to_string(ticket.id) +
                                         " is not the oldest uncollected one");
  }
  ++collected_;
  result.samples.assign(sampled_.begin(), sampled_.end());
  return absl::OkStatus();
}

}  // namespace pagoda::worker
