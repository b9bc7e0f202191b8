#include "kernels/weights/packed_matrix.h"

#include <algorithm>
#include <cstring>

#include "kernels/weights/block_scalar.h"

namespace pagoda::kernels {
namespace {

constexpr int64_t kGgufQ4_1Bytes = 20;  // fp16 d, fp16 m, 16 bytes of nibbles
constexpr int64_t kGgufQ8_0Bytes = 34;  // fp16 d, 32 int8

KernelStatus CheckShape(WeightType type, int64_t rows, int64_t cols) {
  if (rows < 1 || rows > kMaxRows) return {KernelCode::kOutOfRange, "rows", rows, kMaxRows};
  if (cols < 1 || cols > kMaxCols) return {KernelCode::kOutOfRange, "cols", cols, kMaxCols};
  if (type != WeightType::kF32 && cols % kBlockCols != 0) {
    return {KernelCode::kNotMultiple, "cols", cols, kBlockCols};
  }
  return {};
}

// GGUF keeps inputs 0..15 in the low nibbles and 16..31 in the high ones.
void PackBlockRowQ4_1(const uint8_t* gguf, int32_t r, uint8_t* block) {
  std::memcpy(block + kQ4ScaleOffset + 2 * r, gguf, 2);
  std::memcpy(block + kQ4MinOffset + 2 * r, gguf + 2, 2);
  const uint8_t* nibbles = gguf + 4;
  for (int32_t k = 0; k < kBlockCols; ++k) {
    const int32_t q = k < 16 ? nibbles[k] & 15 : nibbles[k - 16] >> 4;
    uint8_t& at = block[Q4Offset(r, k)];
    at = static_cast<uint8_t>(at | (q << Q4Shift(k)));
  }
}

void PackBlockRowQ8_0(const uint8_t* gguf, int32_t r, uint8_t* block) {
  std::memcpy(block + kQ8ScaleOffset + 2 * r, gguf, 2);
  for (int32_t k = 0; k < kBlockCols; ++k) {
    block[Q8Offset(r, k)] = static_cast<uint8_t>(gguf[2 + k] ^ 0x80);  // int8 q -> q + 128
  }
}

void PackRow(WeightType type, int64_t cols, const uint8_t* gguf, int32_t r, uint8_t* group) {
  if (type == WeightType::kF32) {
    for (int64_t k = 0; k < cols; ++k) {
      std::memcpy(group + (k * kGroupRows + r) * sizeof(float), gguf + k * sizeof(float),
                  sizeof(float));
    }
    return;
  }
  for (int64_t b = 0; b < cols / kBlockCols; ++b) {
    if (type == WeightType::kQ4_1) {
      PackBlockRowQ4_1(gguf + b * kGgufQ4_1Bytes, r, group + b * kQ4_1BlockBytes);
    } else {
      PackBlockRowQ8_0(gguf + b * kGgufQ8_0Bytes, r, group + b * kQ8_0BlockBytes);
    }
  }
}

}  // namespace

int64_t GgufRowBytes(WeightType type, int64_t cols) {
  switch (type) {
    case WeightType::kQ4_1:
      return cols / kBlockCols * kGgufQ4_1Bytes;
    case WeightType::kQ8_0:
      return cols / kBlockCols * kGgufQ8_0Bytes;
    case WeightType::kF32:
      break;
  }
  return cols * static_cast<int64_t>(sizeof(float));
}

KernelStatus PackedBytes(WeightType type, int64_t rows, int64_t cols, int64_t* bytes) {
  const KernelStatus shape = CheckShape(type, rows, cols);
  if (shape.ok()) *bytes = RowGroups(rows) * PackedGroupBytes(type, cols);
  return shape;
}

KernelStatus PackRowGroups(WeightType type, int64_t rows, int64_t cols, const uint8_t* gguf,
                           int64_t gguf_bytes, int32_t group_begin, int32_t group_end,
                           uint8_t* packed) {
  const KernelStatus shape = CheckShape(type, rows, cols);
  if (!shape.ok()) return shape;
  const int64_t row_bytes = GgufRowBytes(type, cols);
  if (gguf_bytes != rows * row_bytes) {
    return {KernelCode::kSizeMismatch, "gguf_bytes", gguf_bytes, rows * row_bytes};
  }
  if (group_begin < 0 || group_end < group_begin || group_end > RowGroups(rows)) {
    return {KernelCode::kOutOfRange, "group_end", group_end, RowGroups(rows)};
  }
  const int64_t group_bytes = PackedGroupBytes(type, cols);
  for (int32_t g = group_begin; g < group_end; ++g) {
    uint8_t* group = packed + g * group_bytes;
    std::memset(group, 0, static_cast<size_t>(group_bytes));
    const int64_t first = int64_t{g} * kGroupRows;
    const int64_t count = std::min<int64_t>(kGroupRows, rows - first);
    for (int64_t r = 0; r < count; ++r) {
      PackRow(type, cols, gguf + (first + r) * row_bytes, static_cast<int32_t>(r), group);
    }
  }
  return {};
}

void DequantizeRow(const PackedMatrix& matrix, int32_t row, float* out) {
  for (int32_t k = 0; k < matrix.cols; k += kBlockCols) {
    const int32_t count = std::min(kBlockCols, matrix.cols - k);
    WeightsOfRow(matrix, row, k / kBlockCols, count, out + k);
  }
}

}  // namespace pagoda::kernels
