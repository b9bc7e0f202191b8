// Where keys and values lie inside a KV block, decided once per worker.
//
// A block is [layer][K data | K scales | V data | V scales]; each of the four regions holds the kv
// heads one after another, K as [head_dim][token] and V as [token][head_dim]. Every head's part
// starts on a 64-byte border. Kernels read offsets only from this table and assume no stride. A
// change of where a byte lies changes what the worker says of its layout in a block's identity.
// Concurrency: const after BuildKvLayout.
#ifndef PAGODA_KERNELS_KV_KV_LAYOUT_H_
#define PAGODA_KERNELS_KV_KV_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "kernels/base/kernel_status.h"
#include "kernels/kv/kv_slice.h"

namespace pagoda::kernels {

inline constexpr int64_t kKvAlign = 64;  // a cache line
// A block moves to the store as one message; larger ones are refused at start.
inline constexpr int64_t kMaxKvBlockBytes = int64_t{64} << 20;

struct KvSpec {
  int32_t block_tokens = 0;  // power of two in [16, kMaxBlockTokens]
  int32_t head_dim = 0;      // multiple of 16, <= kMaxHeadDim
  int32_t num_layers = 0;
  int32_t num_kv_heads = 0;  // of this head group (all of them without tensor parallelism)
  KvDtype k_dtype = KvDtype::kBf16;
  KvDtype v_dtype = KvDtype::kBf16;
};

struct KvLayout {
  KvSpec spec;
  int64_t block_bytes = 0;
  std::vector<KvSlice> k;  // [num_layers][num_kv_heads]
  std::vector<KvSlice> v;  // [num_layers][num_kv_heads]

  const KvSlice& K(int32_t layer, int32_t kv_head) const {
    return k[static_cast<size_t>(layer) * spec.num_kv_heads + kv_head];
  }
  const KvSlice& V(int32_t layer, int32_t kv_head) const {
    return v[static_cast<size_t>(layer) * spec.num_kv_heads + kv_head];
  }
};

// Errors name the field of `spec`; kUnsupported for a dtype without kernels; kOutOfRange on
// "block_bytes" over kMaxKvBlockBytes.
KernelStatus BuildKvLayout(const KvSpec& spec, KvLayout* layout);

// "f32", "bf16", ...; the names of --kv-cache-dtype.
const char* KvDtypeName(KvDtype dtype);

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_KV_KV_LAYOUT_H_
