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

struct BlockQ4_1 {
  static constexpr int32_t kBytes = kQ4_1BlockBytes;

  template <int kShift>
  PAGODA_KERNELS_INLINE __m256 Nibble(__m256i dwords) {
    if constexpr (kShift > 0) dwords = _mm256_srli_epi32(dwords, kShift);
    if constexpr (kShift < 28) dwords = _mm256_and_si256(dwords, _mm256_set1_epi32(15));
    return _mm256_cvtepi32_ps(dwords);
  }

  template <typename Use>
  PAGODA_KERNELS_INLINE void ForEachInput(const uint8_t* block, Use use) {
    const __m256 d_low = HalfToFloat8(block + kQ4ScaleOffset);
    const __m256 d_high = HalfToFloat8(block + kQ4ScaleOffset + 16);
    const __m256 m_low = HalfToFloat8(block + kQ4MinOffset);
    const __m256 m_high = HalfToFloat8(block + kQ4MinOffset + 16);
    for (int32_t k = 0; k < kBlockCols; k += 8, block += 64) {
      const __m256i low = LoadDwords(block), high = LoadDwords(block + 32);
      const auto input = [&]<int kShift>(int32_t at) __attribute__((always_inline)) {
        use(at, _mm256_fmadd_ps(Nibble<kShift>(low), d_low, m_low),
            _mm256_fmadd_ps(Nibble<kShift>(high), d_high, m_high));
      };
      input.template operator()<0>(k);
      input.template operator()<8>(k + 1);
      input.template operator()<16>(k + 2);
      input.template operator()<24>(k + 3);
      input.template operator()<4>(k + 4);
      input.template operator()<12>(k + 5);
      input.template operator()<20>(k + 6);
      input.template operator()<28>(k + 7);
    }
  }
};

struct BlockQ8_0 {
  static constexpr int32_t kBytes = kQ8_0BlockBytes;

  // q as a float without a convert: q + 128 in the low mantissa bits of 2^23, minus 2^23 + 128.
  template <int kShift>
  PAGODA_KERNELS_INLINE __m256 Byte(__m256i dwords) {
    if constexpr (kShift > 0) dwords = _mm256_srli_epi32(dwords, kShift);
    if constexpr (kShift < 24) dwords = _mm256_and_si256(dwords, _mm256_set1_epi32(255));
    const __m256i biased = _mm256_or_si256(dwords, _mm256_set1_epi32(0x4B000000));
    return _mm256_sub_ps(_mm256_castsi256_ps(biased), _mm256_set1_ps(8388736.0f));
  }

  template <typename Use>
  PAGODA_KERNELS_INLINE void ForEachInput(const uint8_t* block, Use use) {
    const __m256 d_low = HalfToFloat8(block + kQ8ScaleOffset);
    const __m256 d_high = HalfToFloat8(block + kQ8ScaleOffset + 16);
    for (int32_t k = 0; k < kBlockCols; k += 4, block += 64) {
      const __m256i low = LoadDwords(block), high = LoadDwords(block + 32);
      const auto input = [&]<int kShift>(int32_t at) __attribute__((always_inline)) {
        use(at, _mm256_mul_ps(Byte<kShift>(low), d_low), _mm256_mul_ps(Byte<kShift>(high), d_high));
      };
      input.template operator()<0>(k);
      input.template operator()<8>(k + 1);
      input.template operator()<16>(k + 2);
      input.template operator()<24>(k + 3);
    }
  }
};

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_WEIGHTS_BLOCK_AVX2_H_
