// One packed block seen from one of its rows: the definition of what a weight's value is.
//
// Internal to the kernels. Concurrency: pure functions.
#ifndef PAGODA_KERNELS_WEIGHTS_BLOCK_SCALAR_H_
#define PAGODA_KERNELS_WEIGHTS_BLOCK_SCALAR_H_

#include <cstdint>
#include <cstring>

#include "kernels/base/numeric.h"
#include "kernels/weights/packed_matrix.h"

namespace pagoda::kernels {

PAGODA_KERNELS_INLINE uint16_t LoadU16(const uint8_t* from) {
  uint16_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// Byte and nibble of input k (0..31) for row r: four lines of 16 dwords, one dword per row.
PAGODA_KERNELS_INLINE int32_t Q4Offset(int32_t r, int32_t k) {
  return (k / 8) * 64 + r * 4 + k % 4;
}
PAGODA_KERNELS_INLINE int32_t Q4Shift(int32_t k) { return (k % 8) / 4 * 4; }
inline constexpr int32_t kQ4ScaleOffset = 256;  // d fp16[16], then m fp16[16]
inline constexpr int32_t kQ4MinOffset = 288;

PAGODA_KERNELS_INLINE int32_t Q8Offset(int32_t r, int32_t k) {
  return (k / 4) * 64 + r * 4 + k % 4;
}
inline constexpr int32_t kQ8ScaleOffset = 512;  // d fp16[16]

// w[0..31] of row r. q * d is exact in fp32 (at most 8 + 11 bits), so the multiply and add below
// round once: Q4_1 is fma(q, d, m), Q8_0 is fma(q + 128, d, -128 * d), which is q * d and never -0.
PAGODA_KERNELS_INLINE void BlockRowQ4_1(const uint8_t* block, int32_t r, float* w) {
  const float d = HalfToFloat(LoadU16(block + kQ4ScaleOffset + 2 * r));
  const float m = HalfToFloat(LoadU16(block + kQ4MinOffset + 2 * r));
  for (int32_t k = 0; k < kBlockCols; ++k) {
    const int32_t q = (block[Q4Offset(r, k)] >> Q4Shift(k)) & 15;
    w[k] = static_cast<float>(q) * d + m;
  }
}

PAGODA_KERNELS_INLINE void BlockRowQ8_0(const uint8_t* block, int32_t r, float* w) {
  const float d = HalfToFloat(LoadU16(block + kQ8ScaleOffset + 2 * r));
  const float bias = d * -128.0f;
  for (int32_t k = 0; k < kBlockCols; ++k) {
    w[k] = static_cast<float>(block[Q8Offset(r, k)]) * d + bias;
  }
}

// The `count` (<= 32) weights of `row` that start at input 32 * block_index.
PAGODA_KERNELS_INLINE void WeightsOfRow(const PackedMatrix& matrix, int32_t row,
                                        int32_t block_index, int32_t count, float* w) {
  const int32_t r = row % kGroupRows;
  const uint8_t* group =
      matrix.data + (row / kGroupRows) * PackedGroupBytes(matrix.type, matrix.cols);
  switch (matrix.type) {
    case WeightType::kQ4_1:
      BlockRowQ4_1(group + static_cast<int64_t>(block_index) * kQ4_1BlockBytes, r, w);
      return;
    case WeightType::kQ8_0:
      BlockRowQ8_0(group + static_cast<int64_t>(block_index) * kQ8_0BlockBytes, r, w);
      return;
    case WeightType::kF32:
      break;
  }
  for (int32_t k = 0; k < count; ++k) {
    const int64_t at = (int64_t{block_index} * kBlockCols + k) * kGroupRows + r;
    std::memcpy(&w[k], group + at * sizeof(float), sizeof(float));
  }
}

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_WEIGHTS_BLOCK_SCALAR_H_
