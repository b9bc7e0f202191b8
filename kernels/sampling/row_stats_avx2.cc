#include "kernels/base/avx2.h"
#include "kernels/sampling/row_stats.h"

namespace pagoda::kernels::avx2 {

int32_t ArgMax(const float* x, int64_t count) {
  __m256 best8 = _mm256_set1_ps(-__builtin_inff());
  __m256i ids8 = _mm256_setzero_si256();
  __m256i ids = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 values = _mm256_loadu_ps(x + i);
    const __m256 above = _mm256_cmp_ps(values, best8, _CMP_GT_OQ);
    best8 = _mm256_blendv_ps(best8, values, above);
    ids8 = _mm256_blendv_epi8(ids8, ids, _mm256_castps_si256(above));
    ids = _mm256_add_epi32(ids, _mm256_set1_epi32(8));
  }
  float lane_best[8];
  int32_t lane_ids[8];
  _mm256_storeu_ps(lane_best, best8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lane_ids), ids8);
  float best = lane_best[0];
  int32_t id = lane_ids[0];
  for (int j = 1; j < 8; ++j) {
    const bool tie_below = lane_best[j] == best && lane_ids[j] < id;
    if (lane_best[j] > best || tie_below) {
      best = lane_best[j];
      id = lane_ids[j];
    }
  }
  for (; i < count; ++i) {
    if (x[i] > best) {
      best = x[i];
      id = static_cast<int32_t>(i);
    }
  }
  return id;
}

bool AllFinite(const float* x, int64_t count) {
  const __m256i exponent = _mm256_set1_epi32(0x7F800000);
  __m256i bad = _mm256_setzero_si256();
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    bad = _mm256_or_si256(bad, _mm256_cmpeq_epi32(_mm256_and_si256(bits, exponent), exponent));
  }
  if (_mm256_movemask_epi8(bad) != 0) return false;
  for (; i < count; ++i) {
    if ((FloatBits(x[i]) & 0x7F800000u) == 0x7F800000u) return false;
  }
  return true;
}

float ExpSum(const ExpSumParams& p) {
  const __m256 max = _mm256_set1_ps(p.max), scale = _mm256_set1_ps(p.scale);
  const __m256 masked = _mm256_set1_ps(-__builtin_inff());
  __m256 sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  int64_t i = 0;
  for (; i + kSumLanes <= p.count; i += kSumLanes) {
    for (int half = 0; half < 2; ++half) {
      const __m256 x = _mm256_loadu_ps(p.x + i + 8 * half);
      const __m256 e = _mm256_andnot_ps(_mm256_cmp_ps(x, masked, _CMP_EQ_OQ),
                                        Exp8(_mm256_mul_ps(_mm256_sub_ps(x, max), scale)));
      sums[half] = _mm256_add_ps(sums[half], e);
      if (p.e != nullptr) _mm256_storeu_ps(p.e + i + 8 * half, e);
    }
  }
  float lanes[kSumLanes];
  _mm256_storeu_ps(lanes, sums[0]);
  _mm256_storeu_ps(lanes + 8, sums[1]);
  for (; i < p.count; ++i) {
    const bool is_masked = p.x[i] == -__builtin_inff();
    const float e = is_masked ? 0.0f : Exp((p.x[i] - p.max) * p.scale);
    lanes[i % kSumLanes] = lanes[i % kSumLanes] + e;
    if (p.e != nullptr) p.e[i] = e;
  }
  return FoldLanes(lanes);
}

}  // namespace pagoda::kernels::avx2
