#include "services/worker/cpu_backend.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/cpu_count.h"
#include "common/base/logging.h"
#include "common/base/memory_limit.h"
#include "common/model/gguf.h"
#include "kernels/ops.h"
#include "services/worker/block_table.h"
#include "services/worker/model_identity.h"
#include "services/worker/self_test.h"

namespace pagoda::worker {
namespace {

// A pool beyond this is asked for by name: the default must not take a whole machine.
constexpr uint64_t kMaxDefaultPoolBytes = uint64_t{4} << 30;

int Threads(const WorkerOptions& options) {
  return options.threads > 0 ? options.threads : std::max(1, UsableCpuCount() - 1);
}

uint64_t PoolBytes(const WorkerOptions& options) {
  if (options.kv_cache_bytes > 0) return options.kv_cache_bytes;
  return std::min(kMaxDefaultPoolBytes, UsableMemoryBytes() / 4);
}

Status FromKernel(const kernels::KernelStatus& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(kernels::KernelStatusText(status));
}

// `name` passed the flag's check.
kernels::KvDtype KvDtypeOf(const std::string& name) {
  for (const auto dtype : {kernels::KvDtype::kF32, kernels::KvDtype::kFp16}) {
    if (name == kernels::KvDtypeName(dtype)) return dtype;
  }
  return kernels::KvDtype::kBf16;  // also "auto"
}

StatusOr<int32_t> MaxModelLen(int wanted, int32_t context_length) {
  if (wanted == 0) return context_length;
  if (wanted <= context_length) return wanted;
  return absl::InvalidArgumentError(absl::StrCat(
      "--max-model-len: ", wanted, " is over the model's context of ", context_length));
}

}  // namespace

StatusOr<std::unique_ptr<CpuBackend>> CpuBackend::Load(const model::GgufFile& gguf,
                                                       const WorkerOptions& options) {
  auto backend = std::unique_ptr<CpuBackend>(new CpuBackend);
  PAGODA_ASSIGN_OR_RETURN(backend->config_, model::ReadModelConfig(gguf));
  PAGODA_ASSIGN_OR_RETURN(backend->max_model_len_,
                          MaxModelLen(options.max_model_len, backend->config_.context_length));
  backend->team_ = std::make_unique<ThreadTeam>(Threads(options));
  PAGODA_RETURN_IF_ERROR(backend->LoadPool(options));
  PAGODA_RETURN_IF_ERROR(backend->LoadRunner(gguf, options));
  PAGODA_ASSIGN_OR_RETURN(Digest256 weights,
                          WeightsDigestOf(gguf, backend->config_, backend->team_->size()));
  backend->space_fields_ = MakeSpaceFields(backend->config_, weights, backend->pool_->layout().spec,
                                           kernels::kNumericsF32);
  return backend;
}

Status CpuBackend::LoadPool(const WorkerOptions& options) {
  const int32_t block_tokens = options.block_size == "64" ? 64 : 32;
  PAGODA_ASSIGN_OR_RETURN(
      kernels::KvLayout layout,
      KvPool::LayoutFor(config_, block_tokens, KvDtypeOf(options.kv_cache_dtype)));
  // The self-test needs two blocks, and so does the shortest useful request.
  constexpr uint64_t kMinBlocks = 2;
  uint64_t blocks = PoolBytes(options) / static_cast<uint64_t>(layout.block_bytes);
  if (blocks < kMinBlocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("--kv-cache-bytes: ", PoolBytes(options), " bytes hold ", blocks,
                     " blocks of ", layout.block_bytes, " bytes; at least 2 are needed"));
  }
  num_blocks_ = static_cast<int32_t>(std::min<uint64_t>(blocks, INT32_MAX));
  PAGODA_ASSIGN_OR_RETURN(pool_, KvPool::Create(layout, num_blocks_));
  return absl::OkStatus();
}

Status CpuBackend::LoadRunner(const model::GgufFile& gguf, const WorkerOptions& options) {
  const kernels::Ops* ops = nullptr;
  PAGODA_RETURN_IF_ERROR(FromKernel(kernels::SelectOps(options.isa, &ops)));
  PAGODA_ASSIGN_OR_RETURN(weights_, ModelWeights::Load(gguf, config_, *team_));
  StepLimits limits{.max_num_batched_tokens = options.max_num_batched_tokens,
                    .max_num_seqs = options.max_num_seqs,
                    .max_blocks_per_seq = BlocksFor(max_model_len_, block_tokens())};
  PAGODA_ASSIGN_OR_RETURN(runner_, CpuModelRunner::Create({.config = config_,
                                                           .weights = &weights_,
                                                           .ops = ops,
                                                           .team = team_.get(),
                                                           .pool = pool_->view(),
                                                           .limits = limits}));
  PAGODA_ASSIGN_OR_RETURN(prefill_rate_,
                          RunSelfTest(*runner_, limits, block_tokens(), config_.vocabulary));
  const MemoryBudget budget = runner_->budget();
  Log(LogLevel::kInfo, "model loaded",
      {{"isa", ops->isa},
       {"threads", team_->size()},
       {"weights", FormatBytes(budget.weights)},
       {"activations", FormatBytes(budget.activations + budget.logits + budget.scores)},
       {"kv_pool", FormatBytes(uint64_t(num_blocks_) * pool_->block_bytes())},
       {"kv_blocks", num_blocks_},
       {"kv_dtype", kernels::KvDtypeName(pool_->layout().spec.k_dtype)},
       {"self_test_prefill_tokens_per_second", prefill_rate_}});
  return absl::OkStatus();
}

}  // namespace pagoda::worker
