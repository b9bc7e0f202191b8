// The part of a KV block that holds K or V of one layer and kv head.
//
// Concurrency: a plain value.
#ifndef PAGODA_KERNELS_KV_KV_SLICE_H_
#define PAGODA_KERNELS_KV_KV_SLICE_H_

#include <cstdint>

namespace pagoda::kernels {

// kF32, kBf16 and kFp16 have kernels; the rest are named so that the numbers never change.
enum class KvDtype : uint8_t {
  kF32 = 0,
  kBf16 = 1,
  kFp16 = 2,
  kFp8E4m3 = 3,
  kFp8E5m2 = 4,
  kInt8 = 5,
  kInt4 = 6,
};

// What attention's fixed buffers hold.
inline constexpr int32_t kMaxHeadDim = 256;
inline constexpr int32_t kMaxBlockTokens = 256;  // one attention split

struct KvSlice {
  int64_t data = 0;    // byte offset in the block: K [head_dim][block_tokens], V transposed
  int64_t scales = 0;  // byte offset of the scales; unused by types without any
  KvDtype dtype = KvDtype::kF32;
};

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_KV_KV_SLICE_H_
