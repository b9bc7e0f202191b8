#include <algorithm>

#include "kernels/linear/linear.h"
#include "kernels/weights/block_scalar.h"

namespace pagoda::kernels::scalar {
namespace {

void LinearRow(const LinearParams& p, int32_t n) {
  const int32_t cols = p.weights.cols;
  for (int32_t m = 0; m < p.tokens; ++m) p.y[m * p.y_stride + n] = 0.0f;
  for (int32_t k = 0; k < cols; k += kBlockCols) {
    float w[kBlockCols];
    const int32_t count = std::min(kBlockCols, cols - k);
    WeightsOfRow(p.weights, n, k / kBlockCols, count, w);
    for (int32_t m = 0; m < p.tokens; ++m) {
      const float* x = p.x + m * p.x_stride + k;
      float acc = p.y[m * p.y_stride + n];
      for (int32_t i = 0; i < count; ++i) acc = Fma(w[i], x[i], acc);
      p.y[m * p.y_stride + n] = acc;
    }
  }
}

}  // namespace

void Linear(const LinearParams& p) {
  const int32_t end = std::min(p.group_end * kGroupRows, p.weights.rows);
  for (int32_t n = p.group_begin * kGroupRows; n < end; ++n) LinearRow(p, n);
}

}  // namespace pagoda::kernels::scalar
