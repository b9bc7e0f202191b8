#include <cstring>

#include "kernels/attention/attention.h"
#include "kernels/attention/merge.h"
#include "kernels/base/numeric.h"

namespace pagoda::kernels {

void AttentionClear(float* states, int32_t items, int32_t head_dim) {
  for (int32_t i = 0; i < items; ++i) {
    float* state = states + int64_t{i} * AttnStateFloats(head_dim);
    std::memset(state, 0, sizeof(float) * static_cast<size_t>(AttnStateFloats(head_dim)));
    state[AttnMaxAt(head_dim)] = -__builtin_inff();
  }
}

namespace scalar {
namespace {

void MergeOne(const float* from, float* into, int32_t head_dim) {
  const int32_t max_at = AttnMaxAt(head_dim), sum_at = AttnSumAt(head_dim);
  if (from[sum_at] == 0.0f) return;
  if (from[max_at] > into[max_at]) {
    const float a = Exp(into[max_at] - from[max_at]);
    for (int32_t d = 0; d < head_dim; ++d) into[d] = Fma(into[d], a, from[d]);
    into[sum_at] = Fma(into[sum_at], a, from[sum_at]);
    into[max_at] = from[max_at];
  } else {
    const float b = Exp(from[max_at] - into[max_at]);
    for (int32_t d = 0; d < head_dim; ++d) into[d] = Fma(from[d], b, into[d]);
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
      const float sum = state[AttnSumAt(p.head_dim)];
      for (int32_t d = 0; d < p.head_dim; ++d) out[d] = state[d] / sum;
    }
  }
}

}  // namespace scalar
}  // namespace pagoda::kernels
