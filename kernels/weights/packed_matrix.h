// Weights in the layout R16G32: 16 output rows side by side, 32 inputs per block (README.md).
//
// Packing is done once at load; reading needs no more than the plain struct, so the bytes may as
// well come from a mapped file. Concurrency: const after packing; row groups pack independently.
#ifndef PAGODA_KERNELS_WEIGHTS_PACKED_MATRIX_H_
#define PAGODA_KERNELS_WEIGHTS_PACKED_MATRIX_H_

#include <cstdint>

#include "kernels/base/inline.h"
#include "kernels/base/kernel_status.h"

namespace pagoda::kernels {

inline constexpr int32_t kGroupRows = 16;  // output rows in a row group: one per SIMD lane
inline constexpr int32_t kBlockCols = 32;  // inputs in a block: GGUF's own group size
inline constexpr int32_t kQ4_1BlockBytes = 320;
inline constexpr int32_t kQ8_0BlockBytes = 544;
// Far above any model's vocabulary and width, and low enough that no byte count overflows.
inline constexpr int64_t kMaxRows = int64_t{1} << 24;
inline constexpr int64_t kMaxCols = int64_t{1} << 20;

enum class WeightType : uint8_t { kF32, kQ4_1, kQ8_0 };

struct PackedMatrix {
  WeightType type = WeightType::kF32;
  int32_t rows = 0;               // outputs N
  int32_t cols = 0;               // inputs K
  const uint8_t* data = nullptr;  // [row group][block along K], 64-byte aligned
};

// Bytes of one packed row group; the next one follows directly.
// REQUIRES: cols is a multiple of kBlockCols for quantised types.
PAGODA_KERNELS_INLINE constexpr int64_t PackedGroupBytes(WeightType type, int64_t cols) {
  switch (type) {
    case WeightType::kQ4_1:
      return cols / kBlockCols * kQ4_1BlockBytes;
    case WeightType::kQ8_0:
      return cols / kBlockCols * kQ8_0BlockBytes;
    case WeightType::kF32:
      break;
  }
  return cols * kGroupRows * static_cast<int64_t>(sizeof(float));
}

PAGODA_KERNELS_INLINE constexpr int32_t RowGroups(int64_t rows) {
  return static_cast<int32_t>((rows + kGroupRows - 1) / kGroupRows);
}

// Bytes of one row in the GGUF file. Same requirement as PackedGroupBytes.
int64_t GgufRowBytes(WeightType type, int64_t cols);

// Checks the shape; *bytes = size of the packed matrix.
// Errors: rows or cols outside [1, limit]; cols not a multiple of 32 (quantised types).
KernelStatus PackedBytes(WeightType type, int64_t rows, int64_t cols, int64_t* bytes);

// Packs row groups [group_begin, group_end) of a GGUF tensor ([rows][cols], row-major blocks) into
// `packed`, which is the start of the whole matrix. Missing rows of the last group become zeros.
// Errors: as PackedBytes; gguf_bytes not rows * GgufRowBytes; a bad group range.
KernelStatus PackRowGroups(WeightType type, int64_t rows, int64_t cols, const uint8_t* gguf,
                           int64_t gguf_bytes, int32_t group_begin, int32_t group_end,
                           uint8_t* packed);

// The weights of one row as the linear kernel sees them, e.g. an embedding. out: [cols].
// REQUIRES: 0 <= row < matrix.rows.
void DequantizeRow(const PackedMatrix& matrix, int32_t row, float* out);

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_WEIGHTS_PACKED_MATRIX_H_
