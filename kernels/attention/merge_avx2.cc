#include "kernels/attention/attention.h"
#include "kernels/attention/merge.h"
#include "kernels/base/avx2.h"

namespace pagoda::kernels::avx2 {
namespace {

// into = fma(scaled, factor, added), element by element; into may be either input.
void ScaleAdd(const float* scaled, float factor, const float* added, float* into, int32_t count) {
  const __m256 factors = _mm256_set1_ps(factor);
  for (int32_t d = 0; d < count; d += 8) {
    _mm256_storeu_ps(into + d, _mm256_fmadd_ps(_mm256_loadu_ps(scaled + d), factors,
                                               _mm256_loadu_ps(added + d)));
  }
}

void MergeOne(const float* from, float* into, int32_t head_dim) {
  const int32_t max_at = AttnMaxAt(head_dim), sum_at = AttnSumAt(head_dim);
  if (from[sum_at] == 0.0f) return;
  if (from[max_at] > into[max_at]) {
    const float a = Exp(into[max_at] - from[max_at]);
    ScaleAdd(into, a, from, into, head_dim);
    into[sum_at] = Fma(into[sum_at], a, from[sum_at]);
    into[max_at] = from[max_at];
  } else {
    const float b = Exp(from[max_at] - into[max_at]);
    ScaleAdd(from, b, into, into, head_dim);
    into[sum_at] = Fma(from[sum_at], b, into[sum_at]);
  }
}

}  // namespace

void AttentionMerge(const AttentionMergeParams& p) {
  for (int32_t i = 0; i < p.items; ++i) {
    const int64_t at = int64_t{i} * AttnStateFloats(p.head_dim);
    MergeOne(p.states + at, p.merged + at, p.head_dim);
  }
}

void AttentionFinish(const AttentionFinishParams& p) {
  for (int32_t row = 0; row < p.rows; ++row) {
    for (int32_t head = 0; head < p.group; ++head) {
      const int64_t item = int64_t{row} * p.group + head;
      const float* state = p.merged + item * AttnStateFloats(p.head_dim);
      float* out = p.out + row * p.out_stride + int64_t{head} * p.head_dim;
      const __m256 sum = _mm256_set1_ps(state[AttnSumAt(p.head_dim)]);
      for (int32_t d = 0; d < p.head_dim; d += 8) {
        _mm256_storeu_ps(out + d, _mm256_div_ps(_mm256_loadu_ps(state + d), sum));
      }
    }
  }
}

}  // namespace pagoda::kernels::avx2
