#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/silu.h"

namespace pagoda::kernels::scalar {

void SiluMul(const SiluMulParams& p) {
  for (int32_t row = 0; row < p.rows; ++row) {
    const float* gate = p.gate + row * p.gate_stride;
    const float* up = p.up + row * p.up_stride;
    float* y = p.y + row * p.y_stride;
    for (int32_t i = 0; i < p.cols; ++i) y[i] = Silu(gate[i]) * up[i];
  }
}

void Add(const AddParams& p) {
  for (int64_t i = 0; i < p.count; ++i) p.x[i] = p.x[i] + p.y[i];
}

}  // namespace pagoda::kernels::scalar
