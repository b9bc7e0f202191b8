#include "kernels/linear/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/testing/test_data.h"

namespace pagoda::kernels {
namespace {

using testing::BitDifference;
using testing::MakeMatrix;
using testing::TestMatrix;
using testing::TestRandom;

constexpr WeightType kTypes[] = {WeightType::kF32, WeightType::kQ4_1, WeightType::kQ8_0};

// y of `tokens` rows; x and y have strides wider than the rows, y starts as 0xFF.
std::vector<float> RunLinear(const Ops& ops, const PackedMatrix& weights,
                             const std::vector<float>& x, int32_t tokens, int32_t group_begin,
                             int32_t group_end) {
  const int64_t x_stride = static_cast<int64_t>(x.size()) / tokens;
  const int64_t y_stride = weights.rows + 3;
  std::vector<float> y(tokens * y_stride);
  memset(y.data(), 0xFF, y.size() * sizeof(float));
  ops.linear({weights, x.data(), x_stride, y.data(), y_stride, tokens, group_begin, group_end});
  return y;
}

std::vector<float> RunLinear(const Ops& ops, const PackedMatrix& weights,
                             const std::vector<float>& x, int32_t tokens) {
  return RunLinear(ops, weights, x, tokens, 0, RowGroups(weights.rows));
}

TEST(LinearTest, Scalar_lies_within_the_error_bound_of_a_chain_of_k_roundings) {
  for (const WeightType type : kTypes) {
    for (const int32_t cols : {32, 96, 576}) {
      const TestMatrix matrix = MakeMatrix(type, 21, cols, 11);
      const std::vector<float> x = TestRandom(5).Normals(3 * cols);
      const std::vector<float> y = RunLinear(testing::ScalarOps(), matrix.packed, x, 3);
      for (int32_t m = 0; m < 3; ++m) {
        for (int32_t n = 0; n < 21; ++n) {
          double sum = 0, magnitude = 0;
          for (int32_t k = 0; k < cols; ++k) {
            const double product = matrix.weights[n * cols + k] * x[m * cols + k];
            sum += product;
            magnitude += std::fabs(product);
          }
          // One rounding per FMA and one per weight, each at most 2^-24 of the partial sums.
          const double bound = (cols + 2) * std::ldexp(magnitude, -24);
          ASSERT_NEAR(y[m * 24 + n], sum, bound) << cols << " " << m << " " << n;
        }
      }
    }
  }
}

TEST(LinearTest, Scalar_is_one_fused_chain_in_ascending_k) {
  const TestMatrix matrix = MakeMatrix(WeightType::kQ4_1, 5, 64, 2);
  const std::vector<float> x = TestRandom(3).Normals(64);
  const std::vector<float> y = RunLinear(testing::ScalarOps(), matrix.packed, x, 1);
  for (int32_t n = 0; n < 5; ++n) {
    float acc = 0;
    for (int32_t k = 0; k < 64; ++k) {
      acc = std::fma(static_cast<float>(matrix.weights[n * 64 + k]), x[k], acc);
    }
    EXPECT_EQ(y[n], acc);
  }
}

TEST(LinearTest, Every_isa_gives_the_scalar_bits_for_every_number_of_tokens) {
  if (testing::Avx2Ops() == nullptr) GTEST_SKIP() << "this CPU has no AVX2";
  for (const WeightType type : kTypes) {
    for (int32_t tokens = 1; tokens <= 40; ++tokens) {
      const int32_t rows = 16 * (1 + tokens % 5) - tokens % 3;
      const int32_t cols = type == WeightType::kF32 ? 17 + 9 * tokens : 32 * (1 + tokens % 12);
      const TestMatrix matrix = MakeMatrix(type, rows, cols, tokens);
      const std::vector<float> x = TestRandom(tokens).Normals(tokens * (cols + 5));
      ASSERT_EQ(BitDifference(RunLinear(testing::ScalarOps(), matrix.packed, x, tokens),
                              RunLinear(*testing::Avx2Ops(), matrix.packed, x, tokens)),
                "")
          << static_cast<int>(type) << " " << rows << "x" << cols << " tokens " << tokens;
    }
  }
}

TEST(LinearTest, Every_isa_gives_the_scalar_bits_on_the_models_own_shapes) {
  if (testing::Avx2Ops() == nullptr) GTEST_SKIP() << "this CPU has no AVX2";
  const struct {
    WeightType type;
    int32_t rows, cols, tokens;
  } shapes[] = {{WeightType::kQ4_1, 192, 576, 129},
                {WeightType::kQ4_1, 576, 1536, 7},
                {WeightType::kQ8_0, 1000, 576, 1},
                {WeightType::kQ8_0, 333, 576, 65},
                {WeightType::kF32, 64, 1000, 33}};
  for (const auto& shape : shapes) {
    const TestMatrix matrix = MakeMatrix(shape.type, shape.rows, shape.cols, 1);
    const std::vector<float> x = TestRandom(2).Normals(shape.tokens * shape.cols);
    EXPECT_EQ(BitDifference(RunLinear(testing::ScalarOps(), matrix.packed, x, shape.tokens),
                            RunLinear(*testing::Avx2Ops(), matrix.packed, x, shape.tokens)),
              "")
        << shape.rows << "x" << shape.cols;
  }
}

TEST(LinearTest, A_rows_bits_depend_neither_on_its_batch_mates_nor_on_the_split_over_threads) {
  for (const Ops* ops : testing::EveryOps()) {
    for (const WeightType type : kTypes) {
      const int32_t cols = 416, rows = 90, tokens = 29;
      const TestMatrix matrix = MakeMatrix(type, rows, cols, 9);
      const std::vector<float> x = TestRandom(8).Normals(tokens * cols);
      const std::vector<float> whole = RunLinear(*ops, matrix.packed, x, tokens);
      for (int32_t m = 0; m < tokens; ++m) {
        const std::vector<float> row(x.begin() + m * cols, x.begin() + (m + 1) * cols);
        const std::vector<float> alone = RunLinear(*ops, matrix.packed, row, 1);
        const std::vector<float> expected(whole.begin() + m * 93, whole.begin() + (m + 1) * 93);
        ASSERT_EQ(BitDifference(expected, alone), "") << ops->isa << " " << m;
      }
      for (int32_t g = 0; g < 6; ++g) {
        const std::vector<float> part = RunLinear(*ops, matrix.packed, x, tokens, g, g + 1);
        for (int32_t m = 0; m < tokens; ++m) {
          for (int32_t n = 0; n < 93; ++n) {
            const bool inside = n / 16 == g && n < rows;
            const float got = part[m * 93 + n];
            ASSERT_EQ(inside, !std::isnan(got)) << "only the group's columns are written";
            if (inside) {
              ASSERT_EQ(got, whole[m * 93 + n]);
            }
          }
        }
      }
    }
  }
}

TEST(LinearTest, Every_half_scale_gives_the_same_weight_on_every_isa) {
  // Rows 16 at a time with every finite half as d: the dequantised weights through x = 1.
  if (testing::Avx2Ops() == nullptr) GTEST_SKIP() << "this CPU has no AVX2";
  const int32_t rows = 65536;
  std::vector<uint8_t> gguf;
  for (int32_t code = 0; code < rows; ++code) {
    const bool finite = (code & 0x7C00) != 0x7C00;
    gguf.push_back(static_cast<uint8_t>(finite ? code & 255 : 0));
    gguf.push_back(static_cast<uint8_t>(finite ? code >> 8 : 0));
    for (int k = 0; k < 32; ++k) gguf.push_back(static_cast<uint8_t>(code + 8 * k));
  }
  testing::AlignedBytes packed(rows / 16 * kQ8_0BlockBytes);
  ASSERT_TRUE(PackRowGroups(WeightType::kQ8_0, rows, 32, gguf.data(),
                            static_cast<int64_t>(gguf.size()), 0, rows / 16, packed.data())
                  .ok());
  const PackedMatrix matrix = {WeightType::kQ8_0, rows, 32, packed.data()};
  for (const int32_t tokens : {1, 9}) {
    const std::vector<float> x = TestRandom(4).Normals(32 * tokens);
    EXPECT_EQ(BitDifference(RunLinear(testing::ScalarOps(), matrix, x, tokens),
                            RunLinear(*testing::Avx2Ops(), matrix, x, tokens)),
              "");
  }
}

}  // namespace
}  // namespace pagoda::kernels
