#include "kernels/weights/packed_matrix.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/testing/test_data.h"

namespace pagoda::kernels {
namespace {

using testing::AlignedBytes;
using testing::MakeMatrix;

TEST(PackedMatrixTest, A_hand_made_q4_1_block_lies_where_the_layout_says) {
  // One row of 32: q[k] = k mod 16, d = 1.0 (0x3C00), m = -2.0 (0xC000).
  std::vector<uint8_t> gguf = {0x00, 0x3C, 0x00, 0xC0};
  for (int i = 0; i < 16; ++i) gguf.push_back(static_cast<uint8_t>(i | i << 4));
  AlignedBytes packed(kQ4_1BlockBytes);
  ASSERT_TRUE(PackRowGroups(WeightType::kQ4_1, 1, 32, gguf.data(), 20, 0, 1, packed.data()).ok());
  // Line j, dword of row 0, byte b: low nibble k = 8j + b, high nibble k = 8j + 4 + b.
  EXPECT_EQ(packed.data()[0], 0x40);
  EXPECT_EQ(packed.data()[3], 0x73);
  EXPECT_EQ(packed.data()[64 + 1], 0xD9);
  EXPECT_EQ(packed.data()[128 + 2], 0x62);  // k = 18 and 22
  EXPECT_EQ(packed.data()[4], 0);           // row 1 is padding
  EXPECT_EQ(packed.data()[257], 0x3C);
  EXPECT_EQ(packed.data()[289], 0xC0);
  EXPECT_EQ(packed.data()[259], 0);
  std::vector<float> row(32);
  DequantizeRow({WeightType::kQ4_1, 1, 32, packed.data()}, 0, row.data());
  for (int k = 0; k < 32; ++k) EXPECT_EQ(row[k], static_cast<float>(k % 16 - 2));
}

TEST(PackedMatrixTest, A_hand_made_q8_0_block_lies_where_the_layout_says) {
  // Two rows of 32: q[k] = k - 16 and q[k] = -128; d = 0.5 (0x3800) and -1.0 (0xBC00).
  std::vector<uint8_t> gguf = {0x00, 0x38};
  for (int k = 0; k < 32; ++k) gguf.push_back(static_cast<uint8_t>(k - 16));
  gguf.insert(gguf.end(), {0x00, 0xBC});
  gguf.insert(gguf.end(), 32, 0x80);
  AlignedBytes packed(kQ8_0BlockBytes);
  ASSERT_TRUE(PackRowGroups(WeightType::kQ8_0, 2, 32, gguf.data(), 68, 0, 1, packed.data()).ok());
  EXPECT_EQ(packed.data()[0], 128 - 16);
  EXPECT_EQ(packed.data()[64 + 3], 128 + 7 - 16);  // line 1, byte 3: k = 7
  EXPECT_EQ(packed.data()[4], 0);                  // row 1: -128 + 128
  EXPECT_EQ(packed.data()[513], 0x38);
  EXPECT_EQ(packed.data()[515], 0xBC);
  std::vector<float> row(32);
  const PackedMatrix matrix = {WeightType::kQ8_0, 2, 32, packed.data()};
  DequantizeRow(matrix, 0, row.data());
  for (int k = 0; k < 32; ++k) EXPECT_EQ(row[k], 0.5f * static_cast<float>(k - 16));
  DequantizeRow(matrix, 1, row.data());
  for (int k = 0; k < 32; ++k) EXPECT_EQ(row[k], 128.0f);
}

TEST(PackedMatrixTest, Every_weight_comes_back_as_its_format_defines_it_rounded_once) {
  for (const WeightType type : {WeightType::kF32, WeightType::kQ4_1, WeightType::kQ8_0}) {
    const int32_t rows = 37, cols = type == WeightType::kF32 ? 50 : 96;
    const testing::TestMatrix matrix = MakeMatrix(type, rows, cols, 7);
    std::vector<float> row(cols);
    for (int32_t r = 0; r < rows; ++r) {
      DequantizeRow(matrix.packed, r, row.data());
      for (int32_t k = 0; k < cols; ++k) {
        // The exact value has far fewer than 53 bits, so this conversion is the one rounding.
        ASSERT_EQ(row[k], static_cast<float>(matrix.weights[r * cols + k])) << r << " " << k;
      }
    }
  }
}

TEST(PackedMatrixTest, Packing_row_groups_apart_gives_the_bytes_of_packing_all) {
  const testing::TestMatrix matrix = MakeMatrix(WeightType::kQ4_1, 40, 64, 3);
  const auto bytes = static_cast<int64_t>(matrix.gguf.size());
  int64_t packed_bytes = 0;
  ASSERT_TRUE(PackedBytes(WeightType::kQ4_1, 40, 64, &packed_bytes).ok());
  EXPECT_EQ(packed_bytes, 3 * 2 * 320);
  AlignedBytes packed(packed_bytes);
  for (const int32_t g : {2, 0, 1}) {
    ASSERT_TRUE(
        PackRowGroups(WeightType::kQ4_1, 40, 64, matrix.gguf.data(), bytes, g, g + 1, packed.data())
            .ok());
  }
  EXPECT_EQ(memcmp(packed.data(), matrix.packed.data, packed_bytes), 0);
}

TEST(PackedMatrixTest, A_bad_shape_or_size_is_refused_by_name_value_and_limit) {
  int64_t bytes = 0;
  EXPECT_EQ(KernelStatusText(PackedBytes(WeightType::kQ4_1, 16, 33, &bytes)),
            "cols: 33 is not a multiple of 32");
  EXPECT_EQ(KernelStatusText(PackedBytes(WeightType::kQ8_0, 0, 32, &bytes)),
            "rows: 0 is outside [1, 16777216]");
  EXPECT_EQ(KernelStatusText(PackedBytes(WeightType::kF32, 1, int64_t{1} << 40, &bytes)),
            "cols: 1099511627776 is outside [1, 1048576]");
  EXPECT_TRUE(PackedBytes(WeightType::kF32, 1, 33, &bytes).ok());
  EXPECT_EQ(bytes, 33 * 16 * 4);
  const uint8_t one = 0;
  EXPECT_EQ(KernelStatusText(PackRowGroups(WeightType::kQ8_0, 2, 32, &one, 67, 0, 1, nullptr)),
            "gguf_bytes: 67 bytes given, 68 needed");
  EXPECT_EQ(KernelStatusText(PackRowGroups(WeightType::kQ8_0, 2, 32, &one, 68, 0, 2, nullptr)),
            "group_end: 2 is outside [1, 1]");
}

}  // namespace
}  // namespace pagoda::kernels
