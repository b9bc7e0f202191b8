// Merging split states into attention's result, in ascending order of the splits.
//
// An empty state (no visible slot) has l = 0 and merging it is an exact no-op. Otherwise the side
// with the smaller m is scaled (into an empty state this adds to zeros):
//   m_s > M:  a = exp(M - m_s), O = fma(O, a, o_s), L = fma(L, a, l_s), M = m_s
//   else:     b = exp(m_s - M), O = fma(o_s, b, O), L = fma(l_s, b, L)
// and at the end out = O / L (one rounding). Concurrency: calls on different states may run in
// parallel.
#ifndef PAGODA_KERNELS_ATTENTION_MERGE_H_
#define PAGODA_KERNELS_ATTENTION_MERGE_H_

#include <cstdint>

namespace pagoda::kernels {

struct AttentionMergeParams {
  const float* states = nullptr;  // [items][AttnStateFloats(head_dim)]: the next split
  float* merged = nullptr;        // [items][AttnStateFloats(head_dim)]: all splits before it
  int32_t items = 0;              // query rows * query heads
  int32_t head_dim = 0;
};

struct AttentionFinishParams {
  const float* merged = nullptr;  // [rows][group][AttnStateFloats(head_dim)]
  float* out = nullptr;           // [rows][group][head_dim]
  int64_t out_stride = 0;         // floats between rows of out
  int32_t rows = 0;
  int32_t group = 0;
  int32_t head_dim = 0;
};

// Makes the states empty: o = 0, m = -inf, l = 0.
void AttentionClear(float* states, int32_t items, int32_t head_dim);

namespace scalar {
void AttentionMerge(const AttentionMergeParams& params);
void AttentionFinish(const AttentionFinishParams& params);
}  // namespace scalar
namespace avx2 {
void AttentionMerge(const AttentionMergeParams& params);
void AttentionFinish(const AttentionFinishParams& params);
}  // namespace avx2

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_ATTENTION_MERGE_H_
