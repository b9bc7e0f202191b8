#include "kernels/base/avx2.h"
#include "kernels/norm/rms_norm.h"

namespace pagoda::kernels::avx2 {
namespace {

void AddRow(float* x, const float* add, int32_t cols) {
  int32_t i = 0;
  for (; i + 8 <= cols; i += 8) {
    _mm256_storeu_ps(x + i, _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(add + i)));
  }
  for (; i < cols; ++i) x[i] = x[i] + add[i];
}

float SumOfSquares(const float* x, int32_t cols) {
  __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
  int32_t i = 0;
  for (; i + kSumLanes <= cols; i += kSumLanes) {
    const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
    low = _mm256_fmadd_ps(a, a, low);
    high = _mm256_fmadd_ps(b, b, high);
  }
  float lanes[kSumLanes];
  _mm256_storeu_ps(lanes, low);
  _mm256_storeu_ps(lanes + 8, high);
  for (; i < cols; ++i) lanes[i % kSumLanes] = Fma(x[i], x[i], lanes[i % kSumLanes]);
  return FoldLanes(lanes);
}

}  // namespace

void RmsNorm(const RmsNormParams& p) {
  for (int32_t row = 0; row < p.rows; ++row) {
    float* x = p.x + row * p.x_stride;
    float* y = p.y + row * p.y_stride;
    if (p.add != nullptr) AddRow(x, p.add + row * p.add_stride, p.cols);
    const float mean = SumOfSquares(x, p.cols) / static_cast<float>(p.cols);
    const float scale = 1.0f / __builtin_sqrtf(mean + p.eps);
    const __m256 scales = _mm256_set1_ps(scale);
    int32_t i = 0;
    for (; i + 8 <= p.cols; i += 8) {
      const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), scales);
      _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(p.weight + i), scaled));
    }
    for (; i < p.cols; ++i) y[i] = p.weight[i] * (x[i] * scale);
  }
}

}  // namespace pagoda::kernels::avx2
