// The bytes of the pool's blocks, one contiguous range each: what a transfer copies. Made by the
// backend; what lies inside a block is its own business (the layout digest names it).
//
// Concurrency: Bytes from any thread. Who may read or write a block is decided by its state: a
// loading block belongs to its transfer, a computing one to the runner, a ready one is read only.
#ifndef PAGODA_SERVICES_WORKER_BLOCK_MEMORY_H_
#define PAGODA_SERVICES_WORKER_BLOCK_MEMORY_H_

#include <cstddef>
#include <span>

#include "services/worker/block_table.h"

namespace pagoda::worker {

class BlockMemory {
 public:
  virtual ~BlockMemory() = default;
  // Of every block; a multiple of 64.
  virtual size_t block_bytes() const = 0;
  // [block_bytes()] aligned to 64; valid as long as the object.
  virtual std::span<std::byte> Bytes(BlockId block) = 0;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_BLOCK_MEMORY_H_
