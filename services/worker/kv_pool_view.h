// Where the KV pool lies: what a ModelRunner needs to know of memory that the worker owns.
//
// Concurrency: a plain value. Blocks that a launched step writes or reads belong to it until it is
// collected.
#ifndef PAGODA_SERVICES_WORKER_KV_POOL_VIEW_H_
#define PAGODA_SERVICES_WORKER_KV_POOL_VIEW_H_

#include <cstdint>

#include "kernels/kv/kv_layout.h"

namespace pagoda::worker {

struct KvPoolView {
  uint8_t* base = nullptr;   // 64-byte aligned
  int64_t block_stride = 0;  // bytes; a multiple of 64, at least the layout's block_bytes
  int32_t num_blocks = 0;    // physical ids are [0, num_blocks)
  const kernels::KvLayout* layout = nullptr;  // outlives the view

  uint8_t* Block(int32_t id) const { return base + id * block_stride; }
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_KV_POOL_VIEW_H_
