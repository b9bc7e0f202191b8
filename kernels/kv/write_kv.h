// Writes one token's keys and values of one layer into a KV block.
//
// Quantisation happens here, once; attention reads what was written. One implementation serves
// every ISA (integer rounding, scattered stores). Concurrency: calls on different slots, layers
// or blocks may run in parallel.
#ifndef PAGODA_KERNELS_KV_WRITE_KV_H_
#define PAGODA_KERNELS_KV_WRITE_KV_H_

#include <cstdint>

#include "kernels/kv/kv_layout.h"

namespace pagoda::kernels {

struct WriteKvParams {
  const KvLayout* layout = nullptr;
  int32_t layer = 0;
  uint8_t* block = nullptr;  // layout->block_bytes, 64-byte aligned
  int32_t slot = 0;          // of the block: [0, block_tokens)
  const float* k = nullptr;  // [num_kv_heads][head_dim], already rotated
  const float* v = nullptr;  // [num_kv_heads][head_dim]
};

void WriteKv(const WriteKvParams& params);

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_KV_WRITE_KV_H_
