#include "services/worker/host_pool.h"

#include <sys/mman.h>

#include <cassert>

#include "absl/strings/str_cat.h"

namespace pagoda::worker {

StatusOr<std::unique_ptr<HostPool>> HostPool::Make(int32_t num_blocks, size_t block_bytes) {
  assert(num_blocks > 0 && block_bytes > 0 && block_bytes % 64 == 0);
  size_t bytes = static_cast<size_t>(num_blocks) * block_bytes;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map a KV pool of ", bytes, " bytes (--kv-cache-bytes)"));
  }
  madvise(base, bytes, MADV_HUGEPAGE);  // advice: small pages work too
  return std::unique_ptr<HostPool>(
      new HostPool(static_cast<std::byte*>(base), bytes, num_blocks, block_bytes));
}

HostPool::~HostPool() { munmap(base_, mapped_bytes_); }

std::span<std::byte> HostPool::Bytes(BlockId block) {
  auto index = static_cast<int32_t>(block);
  assert(index >= 0 && index < num_blocks_);
  return {base_ + static_cast<size_t>(index) * block_bytes_, block_bytes_};
}

}  // namespace pagoda::worker
