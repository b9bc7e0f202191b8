// The KV pool in host memory: one mapping, blocks side by side.
//
// Concurrency: immutable after Make; who may touch a block's bytes is block_memory.h's business.
#ifndef PAGODA_SERVICES_WORKER_HOST_POOL_H_
#define PAGODA_SERVICES_WORKER_HOST_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/base/status.h"
#include "services/worker/block_memory.h"

namespace pagoda::worker {

class HostPool final : public BlockMemory {
 public:
  // Memory for `num_blocks` blocks of `block_bytes` (a multiple of 64), zero-filled by the system at
  // first touch, in huge pages where the system gives them. Errors: RESOURCE_EXHAUSTED naming the size.
  static StatusOr<std::unique_ptr<HostPool>> Make(int32_t num_blocks, size_t block_bytes);

  ~HostPool() override;
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  size_t block_bytes() const override { return block_bytes_; }
  std::span<std::byte> Bytes(BlockId block) override;

  std::byte* base() { return base_; }

 private:
  HostPool(std::byte* base, size_t mapped_bytes, int32_t num_blocks, size_t block_bytes)
      : base_(base),
        mapped_bytes_(mapped_bytes),
        num_blocks_(num_blocks),
        block_bytes_(block_bytes) {}

  std::byte* const base_;
  const size_t mapped_bytes_;
  const int32_t num_blocks_;
  const size_t block_bytes_;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_HOST_POOL_H_
