// The memory of the KV pool on the CPU: num_blocks blocks of the layout's size, one after another.
//
// Which block belongs to whom is the block manager's business.
//
// Concurrency: as block_memory.h says; the pool itself is immutable after Create.
#ifndef PAGODA_SERVICES_WORKER_KV_POOL_H_
#define PAGODA_SERVICES_WORKER_KV_POOL_H_

#include <cstdint>
#include <memory>

#include "common/base/status.h"
#include "common/model/model_config.h"
#include "kernels/kv/kv_layout.h"
#include "services/worker/aligned_buffer.h"
#include "services/worker/block_memory.h"
#include "services/worker/kv_pool_view.h"

namespace pagoda::worker {

class KvPool final : public BlockMemory {
 public:
  // The layout of a model's blocks with K and V of one type.
  // Errors: INVALID_ARGUMENT or UNIMPLEMENTED naming the field.
  static StatusOr<kernels::KvLayout> LayoutFor(const model::ModelConfig& config,
                                               int32_t block_tokens, kernels::KvDtype dtype);

  // Errors: INVALID_ARGUMENT for num_blocks < 1; RESOURCE_EXHAUSTED.
  static StatusOr<std::unique_ptr<KvPool>> Create(const kernels::KvLayout& layout,
                                                  int32_t num_blocks);

  const kernels::KvLayout& layout() const { return layout_; }
  KvPoolView view() const { return {memory_.data(), layout_.block_bytes, num_blocks_, &layout_}; }

  size_t block_bytes() const override { return static_cast<size_t>(layout_.block_bytes); }
  std::span<std::byte> Bytes(BlockId block) override {
    return {reinterpret_cast<std::byte*>(view().Block(static_cast<int32_t>(block))), block_bytes()};
  }

 private:
  KvPool(const kernels::KvLayout& layout, int32_t num_blocks, AlignedBuffer memory)
      : layout_(layout), num_blocks_(num_blocks), memory_(std::move(memory)) {}

  const kernels::KvLayout layout_;
  const int32_t num_blocks_;
  const AlignedBuffer memory_;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_KV_POOL_H_
