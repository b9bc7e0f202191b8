#include "kernels/base/avx2.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/silu.h"

namespace pagoda::kernels::avx2 {
namespace {

__m256 Silu8(__m256 g) {
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 e = Exp8(_mm256_or_ps(g, _mm256_set1_ps(-0.0f)));
  const __m256 at_least_0 = _mm256_cmp_ps(g, _mm256_setzero_ps(), _CMP_GE_OQ);
  const __m256 numerator = _mm256_blendv_ps(e, one, at_least_0);
  return _mm256_mul_ps(g, _mm256_div_ps(numerator, _mm256_add_ps(one, e)));
}

}  // namespace

void SiluMul(const SiluMulParams& p) {
  for (int32_t row = 0; row < p.rows; ++row) {
    const float* gate = p.gate + row * p.gate_stride;
    const float* up = p.up + row * p.up_stride;
    float* y = p.y + row * p.y_stride;
    int32_t i = 0;
    for (; i + 8 <= p.cols; i += 8) {
      const __m256 silu = Silu8(_mm256_loadu_ps(gate + i));
      _mm256_storeu_ps(y + i, _mm256_mul_ps(silu, _mm256_loadu_ps(up + i)));
    }
    for (; i < p.cols; ++i) y[i] = Silu(gate[i]) * up[i];
  }
}

void Add(const AddParams& p) {
  int64_t i = 0;
  for (; i + 8 <= p.count; i += 8) {
    _mm256_storeu_ps(p.x + i, _mm256_add_ps(_mm256_loadu_ps(p.x + i), _mm256_loadu_ps(p.y + i)));
  }
  for (; i < p.count; ++i) p.x[i] = p.x[i] + p.y[i];
}

}  // namespace pagoda::kernels::avx2
