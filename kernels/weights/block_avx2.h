// Packed blocks dequantised sixteen rows at a time: two vectors (rows 0-7, rows 8-15) per input.
//
// Each block type gives ForEachInput(block, use): use(k, low, high) for k = 0..31 ascending, with
// the weights of block_scalar.h bit for bit. Concurrency: pure functions.
#ifndef PAGODA_KERNELS_WEIGHTS_BLOCK_AVX2_H_
#define PAGODA_KERNELS_WEIGHTS_BLOCK_AVX2_H_

#include <cstdint>

#include "kernels/base/avx2.h"
#include "kernels/weights/block_scalar.h"

namespace pagoda::kernels {

PAGODA_KERNELS_INLINE __m256i LoadDwords(const uint8_t* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}

// A field of kMask << kShift as a float: left where it lies, the scale being divided by the same
// power of two. Both are exact, so the product inside the fma is the same and a shift is saved.
template <int kShift, int32_t kMask>
PAGODA_KERNELS_INLINE __m256 Field(__m256i dwords) {
  return _mm256_cvtepi32_ps(_mm256_and_si256(dwords, _mm256_set1_epi32(kMask << kShift)));
}

// d, d / 2^8 and d / 2^16 for sixteen rows.
struct Scales {
  __m256 low[3], high[3];
};

PAGODA_KERNELS_INLINE Scales LoadScales(const uint8_t* halves) {
  Scales d;
  d.low[0] = HalfToFloat8(halves);
  d.high[0] = HalfToFloat8(halves + 16);
#pragma GCC unroll 2
  for (int i = 1; i < 3; ++i) {
    d.low[i] = _mm256_mul_ps(d.low[i - 1], _mm256_set1_ps(0x1p-8f));
    d.high[i] = _mm256_mul_ps(d.high[i - 1], _mm256_set1_ps(0x1p-8f));
  }
  return d;
}

struct BlockQ4_1 {
  static constexpr int32_t kBytes = kQ4_1BlockBytes;

  template <typename Use>
  PAGODA_KERNELS_INLINE void ForEachInput(const uint8_t* block, Use use) {
    const Scales d = LoadScales(block + kQ4ScaleOffset);
    const __m256 m_low = HalfToFloat8(block + kQ4MinOffset);
    const __m256 m_high = HalfToFloat8(block + kQ4MinOffset + 16);
    for (int32_t k = 0; k < kBlockCols; k += 8, block += 64) {
      const __m256i low = LoadDwords(block), high = LoadDwords(block + 32);
      const auto weigh = [&](int32_t at, __m256 q_low, __m256 q_high, int scale)
          __attribute__((always_inline)) {
        use(at, _mm256_fmadd_ps(q_low, d.low[scale], m_low),
            _mm256_fmadd_ps(q_high, d.high[scale], m_high));
      };
      weigh(k, Field<0, 15>(low), Field<0, 15>(high), 0);
      weigh(k + 1, Field<8, 15>(low), Field<8, 15>(high), 1);
      weigh(k + 2, Field<16, 15>(low), Field<16, 15>(high), 2);
      weigh(k + 3, Field<0, 15>(_mm256_srli_epi32(low, 24)),
            Field<0, 15>(_mm256_srli_epi32(high, 24)), 0);
      const __m256i low4 = _mm256_srli_epi32(low, 4), high4 = _mm256_srli_epi32(high, 4);
      weigh(k + 4, Field<0, 15>(low4), Field<0, 15>(high4), 0);
      weigh(k + 5, Field<8, 15>(low4), Field<8, 15>(high4), 1);
      weigh(k + 6, Field<16, 15>(low4), Field<16, 15>(high4), 2);
      weigh(k + 7, _mm256_cvtepi32_ps(_mm256_srli_epi32(low, 28)),
            _mm256_cvtepi32_ps(_mm256_srli_epi32(high, 28)), 0);
    }
  }
};

struct BlockQ8_0 {
  static constexpr int32_t kBytes = kQ8_0BlockBytes;

  template <typename Use>
  PAGODA_KERNELS_INLINE void ForEachInput(const uint8_t* block, Use use) {
    const Scales d = LoadScales(block + kQ8ScaleOffset);
    const __m256 bias_low = _mm256_mul_ps(d.low[0], _mm256_set1_ps(-128.0f));
    const __m256 bias_high = _mm256_mul_ps(d.high[0], _mm256_set1_ps(-128.0f));
    for (int32_t k = 0; k < kBlockCols; k += 4, block += 64) {
      const __m256i low = LoadDwords(block), high = LoadDwords(block + 32);
      const auto weigh = [&](int32_t at, __m256 q_low, __m256 q_high, int scale)
          __attribute__((always_inline)) {
        use(at, _mm256_fmadd_ps(q_low, d.low[scale], bias_low),
            _mm256_fmadd_ps(q_high, d.high[scale], bias_high));
      };
      weigh(k, Field<0, 255>(low), Field<0, 255>(high), 0);
      weigh(k + 1, Field<8, 255>(low), Field<8, 255>(high), 1);
      weigh(k + 2, Field<16, 255>(low), Field<16, 255>(high), 2);
      weigh(k + 3, _mm256_cvtepi32_ps(_mm256_srli_epi32(low, 24)),
            _mm256_cvtepi32_ps(_mm256_srli_epi32(high, 24)), 0);
    }
  }
};

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_WEIGHTS_BLOCK_AVX2_H_
