// Root-mean-square normalisation, with the residual addition before it when asked for.
//
// Order: x = x + add (one rounding); lane j of 16 takes s = fma(x, x, s) over elements j, j + 16,
// ...; the lanes fold (base/numeric.h); scale = 1 / sqrt(sum / cols + eps), every step rounded;
// y = weight * (x * scale). Concurrency: calls on disjoint rows may run in parallel.
#ifndef PAGODA_KERNELS_NORM_RMS_NORM_H_
#define PAGODA_KERNELS_NORM_RMS_NORM_H_

#include <cstdint>

namespace pagoda::kernels {

struct RmsNormParams {
  float* x = nullptr;          // [rows][cols]; written only when `add` is given
  int64_t x_stride = 0;        // floats between rows
  const float* add = nullptr;  // [rows][cols] or null: x += add first
  int64_t add_stride = 0;
  const float* weight = nullptr;  // [cols]
  float* y = nullptr;             // [rows][cols]; may be x
  int64_t y_stride = 0;
  int32_t rows = 0;
  int32_t cols = 0;  // any number >= 1
  float eps = 0.0f;
};

namespace scalar {
void RmsNorm(const RmsNormParams& params);
}
namespace avx2 {
void RmsNorm(const RmsNormParams& params);
}

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_NORM_RMS_NORM_H_
