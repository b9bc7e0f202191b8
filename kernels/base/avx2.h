// The AVX2 counterparts of base/numeric.h, eight elements at a time.
//
// Only files compiled for AVX2, FMA and F16C include this. Concurrency: pure functions.
#ifndef PAGODA_KERNELS_BASE_AVX2_H_
#define PAGODA_KERNELS_BASE_AVX2_H_

#include <immintrin.h>

#include <cstdint>

#include "kernels/base/numeric.h"

namespace pagoda::kernels {

PAGODA_KERNELS_INLINE __m256 HalfToFloat8(const uint8_t* halves) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves)));
}

PAGODA_KERNELS_INLINE __m256 Bf16ToFloat8(const uint8_t* bf16s) {
  const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bf16s));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
}

// Exp of numeric.h. max_ps gives its second operand when either is NaN.
PAGODA_KERNELS_INLINE __m256 Exp8(__m256 x) {
  const __m256 bias = _mm256_set1_ps(kRoundBias);
  const __m256 clamped = _mm256_max_ps(_mm256_set1_ps(kExpMin), x);
  const __m256 biased = _mm256_fmadd_ps(clamped, _mm256_set1_ps(kLog2e), bias);
  const __m256 n = _mm256_sub_ps(biased, bias);
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(kNegLn2Hi), clamped);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(kNegLn2Lo), r);
  __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(kExpP0), r, _mm256_set1_ps(kExpP1));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpP2));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpP3));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpP4));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(kExpP5));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  const __m256 y = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  const __m256i shift = _mm256_slli_epi32(_mm256_castps_si256(biased), 23);
  const __m256 scaled = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(y), shift));
  return _mm256_blendv_ps(scaled, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

// All ones in the lanes below `count`, for any count.
PAGODA_KERNELS_INLINE __m256i LanesBelow(int32_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// x[0..count) = x * factor; count is a multiple of 8.
PAGODA_KERNELS_INLINE void ScaleInPlace(float* x, int32_t count, float factor) {
  const __m256 factors = _mm256_set1_ps(factor);
  for (int32_t i = 0; i < count; i += 8) {
    _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), factors));
  }
}

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_BASE_AVX2_H_
