#include "kernels/base/avx2.h"
#include "kernels/rope/rope.h"

namespace pagoda::kernels::avx2 {
namespace {

void RotateOne(float* at_a, float* at_b, float cos, float sin) {
  const float a = *at_a, b = *at_b;
  *at_a = a * cos - b * sin;
  *at_b = b * cos + a * sin;
}

// Four pairs (a, b) lie in one vector: addsub subtracts in the a lanes and adds in the b lanes.
void RotateAdjacent(float* x, const float* cos, const float* sin, int32_t pairs) {
  const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  int32_t i = 0;
  for (; i + 4 <= pairs; i += 4) {
    const __m256 c = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(cos + i)), twice);
    const __m256 s = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(sin + i)), twice);
    const __m256 ab = _mm256_loadu_ps(x + 2 * i);
    const __m256 ba = _mm256_permute_ps(ab, 0xB1);
    _mm256_storeu_ps(x + 2 * i, _mm256_addsub_ps(_mm256_mul_ps(ab, c), _mm256_mul_ps(ba, s)));
  }
  for (; i < pairs; ++i) RotateOne(x + 2 * i, x + 2 * i + 1, cos[i], sin[i]);
}

void RotateHalves(float* x, const float* cos, const float* sin, int32_t pairs) {
  int32_t i = 0;
  for (; i + 8 <= pairs; i += 8) {
    const __m256 c = _mm256_loadu_ps(cos + i), s = _mm256_loadu_ps(sin + i);
    const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + pairs);
    _mm256_storeu_ps(x + i, _mm256_sub_ps(_mm256_mul_ps(a, c), _mm256_mul_ps(b, s)));
    _mm256_storeu_ps(x + i + pairs, _mm256_add_ps(_mm256_mul_ps(b, c), _mm256_mul_ps(a, s)));
  }
  for (; i < pairs; ++i) RotateOne(x + i, x + i + pairs, cos[i], sin[i]);
}

}  // namespace

void Rope(const RopeParams& p) {
  const int32_t pairs = p.rotary_dim / 2;
  const auto rotate = p.order == RopeOrder::kAdjacent ? RotateAdjacent : RotateHalves;
  for (int32_t row = 0; row < p.rows; ++row) {
    const float* cos = p.cos + int64_t{row} * pairs;
    const float* sin = p.sin + int64_t{row} * pairs;
    for (int32_t head = 0; head < p.heads; ++head) {
      rotate(p.x + row * p.x_stride + int64_t{head} * p.head_dim, cos, sin, pairs);
    }
  }
}

}  // namespace pagoda::kernels::avx2
