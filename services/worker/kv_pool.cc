#include "services/worker/kv_pool.h"

#include <string>

namespace pagoda::worker {

StatusOr<kernels::KvLayout> KvPool::LayoutFor(const model::ModelConfig& config,
                                              int32_t block_tokens, kernels::KvDtype dtype) {
  kernels::KvLayout layout;
  const kernels::KernelStatus status = kernels::BuildKvLayout({.block_tokens = block_tokens,
                                                               .head_dim = config.head_dim,
                                                               .num_layers = config.num_layers,
                                                               .num_kv_heads = config.num_kv_heads,
                                                               .k_dtype = dtype,
                                                               .v_dtype = dtype},
                                                              &layout);
  if (status.ok()) return layout;
  const std::string message = "KV layout: " + KernelStatusText(status);
  return status.code == kernels::KernelCode::kUnsupported ? absl::UnimplementedError(message)
                                                          : absl::InvalidArgumentError(message);
}

StatusOr<std::unique_ptr<KvPool>> KvPool::Create(const kernels::KvLayout& layout,
                                                 int32_t num_blocks) {
  if (num_blocks < 1) {
    return absl::InvalidArgumentError("KV pool: " + std::to_string(num_blocks) +
                                      " blocks, at least 1 is needed");
  }
  PAGODA_ASSIGN_OR_RETURN(AlignedBuffer memory,
                          AlignedBuffer::Allocate(layout.block_bytes * num_blocks, "KV pool"));
  return std::unique_ptr<KvPool>(new KvPool(layout, num_blocks, std::move(memory)));
}

}  // namespace pagoda::worker
