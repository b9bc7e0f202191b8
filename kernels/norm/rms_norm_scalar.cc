#include "kernels/base/numeric.h"
#include "kernels/norm/rms_norm.h"

namespace pagoda::kernels::scalar {

void RmsNorm(const RmsNormParams& p) {
  for (int32_t row = 0; row < p.rows; ++row) {
    float* x = p.x + row * p.x_stride;
    float* y = p.y + row * p.y_stride;
    if (p.add != nullptr) {
      const float* add = p.add + row * p.add_stride;
      for (int32_t i = 0; i < p.cols; ++i) x[i] = x[i] + add[i];
    }
    float lanes[kSumLanes] = {};
    for (int32_t i = 0; i < p.cols; ++i) {
      lanes[i % kSumLanes] = Fma(x[i], x[i], lanes[i % kSumLanes]);
    }
    const float mean = FoldLanes(lanes) / static_cast<float>(p.cols);
    const float scale = 1.0f / __builtin_sqrtf(mean + p.eps);
    for (int32_t i = 0; i < p.cols; ++i) y[i] = p.weight[i] * (x[i] * scale);
  }
}

}  // namespace pagoda::kernels::scalar
