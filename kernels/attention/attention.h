// Paged attention: the state of one split of the KV slots for a tile of query rows.
//
// The slots of a sequence are cut into splits of kAttnSplitTokens, aligned to slot 0. A unit of
// work is (query tile, kv head, split); it leaves one state (o, m, l) per query head, as in
// FlashAttention's split-KV, and states merge in ascending order (merge.h), also when there is
// only one. README.md, "Attention", gives every order. A tile's rows belong to one sequence.
// No slot at or beyond a row's `visible` is read into that row's result.
// Concurrency: units with different states may run in parallel.
#ifndef PAGODA_KERNELS_ATTENTION_ATTENTION_H_
#define PAGODA_KERNELS_ATTENTION_ATTENTION_H_

#include <cstdint>

#include "kernels/base/inline.h"
#include "kernels/kv/kv_slice.h"

namespace pagoda::kernels {

// Part of the numerics: changing it changes bits. A multiple of every legal block_tokens.
inline constexpr int32_t kAttnSplitTokens = 256;

// A state is o [head_dim], then the 16 lanes of l, then m and l, padded to a cache line.
PAGODA_KERNELS_INLINE constexpr int32_t AttnLanesAt(int32_t head_dim) { return head_dim; }
PAGODA_KERNELS_INLINE constexpr int32_t AttnMaxAt(int32_t head_dim) { return head_dim + 16; }
PAGODA_KERNELS_INLINE constexpr int32_t AttnSumAt(int32_t head_dim) { return head_dim + 17; }
PAGODA_KERNELS_INLINE constexpr int32_t AttnStateFloats(int32_t head_dim) { return head_dim + 32; }

// How many splits a row with `visible` slots has.
PAGODA_KERNELS_INLINE constexpr int32_t AttnSplits(int32_t visible) {
  return (visible + kAttnSplitTokens - 1) / kAttnSplitTokens;
}

struct AttentionSplitParams {
  KvSlice k;  // this layer and kv head, from KvLayout
  KvSlice v;
  int32_t block_tokens = 0;
  int32_t head_dim = 0;
  const uint8_t* const* blocks = nullptr;  // block bases; blocks[b] holds slots b * block_tokens..
  const float* q = nullptr;                // [rows][group][head_dim]; the kv head's query heads
  int64_t q_stride = 0;                    // floats between rows
  int32_t rows = 0;                        // query rows of the tile
  int32_t group = 0;                       // query heads per kv head
  const int32_t* visible = nullptr;        // [rows] the row sees slots [0, visible[row])
  float scale = 0.0f;                      // 1 / sqrt(head_dim) as a rule
  int32_t split = 0;                       // slots [split, split + 1) * kAttnSplitTokens
  float* states = nullptr;  // [rows][group][AttnStateFloats(head_dim)], written whole but padding
};

namespace scalar {
void AttentionSplit(const AttentionSplitParams& params);
}
namespace avx2 {
void AttentionSplit(const AttentionSplitParams& params);
}

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_ATTENTION_ATTENTION_H_
