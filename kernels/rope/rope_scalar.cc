#include "kernels/rope/rope.h"

namespace pagoda::kernels::scalar {

void Rope(const RopeParams& p) {
  const int32_t pairs = p.rotary_dim / 2;
  const bool adjacent = p.order == RopeOrder::kAdjacent;
  for (int32_t row = 0; row < p.rows; ++row) {
    const float* cos = p.cos + int64_t{row} * pairs;
    const float* sin = p.sin + int64_t{row} * pairs;
    for (int32_t head = 0; head < p.heads; ++head) {
      float* x = p.x + row * p.x_stride + int64_t{head} * p.head_dim;
      for (int32_t i = 0; i < pairs; ++i) {
        float* at_a = adjacent ? x + 2 * i : x + i;
        float* at_b = adjacent ? x + 2 * i + 1 : x + i + pairs;
        const float a = *at_a, b = *at_b;
        *at_a = a * cos[i] - b * sin[i];
        *at_b = b * cos[i] + a * sin[i];
      }
    }
  }
}

}  // namespace pagoda::kernels::scalar
