#include "kernels/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/base/numeric.h"
#include "kernels/testing/test_data.h"

namespace pagoda::kernels {
namespace {

using testing::BitDifference;
using testing::TestRandom;

std::vector<float> SiluMulOf(const Ops& ops, const std::vector<float>& gate,
                             const std::vector<float>& up, int32_t rows) {
  const auto cols = static_cast<int32_t>(gate.size()) / rows;
  std::vector<float> y(gate.size());
  ops.silu_mul({gate.data(), cols, up.data(), cols, y.data(), cols, rows, cols});
  return y;
}

TEST(SiluMulTest, Scalar_lies_within_its_error_bound_over_the_whole_range) {
  std::vector<float> gate, up;
  for (float g = -80; g <= 80; g += 0.0137f) gate.push_back(g);
  gate.push_back(0.0f);
  up.assign(gate.size(), 1.5f);
  const std::vector<float> y = SiluMulOf(testing::ScalarOps(), gate, up, 1);
  for (size_t i = 0; i < gate.size(); ++i) {
    const double exact = gate[i] / (1 + std::exp(-static_cast<double>(gate[i]))) * 1.5;
    // exp is within 2 halves of an ulp twice over (numerator, denominator); then four roundings.
    ASSERT_NEAR(y[i], exact, std::fabs(exact) * 8 * std::ldexp(1, -24)) << gate[i];
  }
}

TEST(SiluMulTest, Large_gates_neither_overflow_nor_hide_a_nan) {
  const std::vector<float> gate = {1e30f, -1e30f, NAN, BitsFloat(0xFFFFFFFFu), 100, -100, 0, -0.0f};
  for (const Ops* ops : testing::EveryOps()) {
    const std::vector<float> y = SiluMulOf(*ops, gate, std::vector<float>(8, 1.0f), 1);
    EXPECT_EQ(y[0], 1e30f);
    EXPECT_TRUE(std::isfinite(y[1]));
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_TRUE(std::isnan(y[3]));
    EXPECT_EQ(y[4], 100.0f);
    EXPECT_NEAR(y[5], 0, 1e-30);
    EXPECT_EQ(y[6], 0.0f);
    EXPECT_TRUE(std::signbit(y[7]));
  }
}

TEST(SiluMulTest, Every_isa_gives_the_scalar_bits) {
  if (testing::Avx2Ops() == nullptr) GTEST_SKIP() << "this CPU has no AVX2";
  for (int32_t cols = 1; cols < 70; ++cols) {
    TestRandom random(cols);
    std::vector<float> gate = random.Normals(3 * cols), up = random.Normals(3 * cols);
    for (float& g : gate) g *= 20;
    ASSERT_EQ(BitDifference(SiluMulOf(testing::ScalarOps(), gate, up, 3),
                            SiluMulOf(*testing::Avx2Ops(), gate, up, 3)),
              "")
        << cols;
  }
}

TEST(ExpTest, Every_isa_gives_the_scalar_bits_of_exp_on_a_dense_sample) {
  if (testing::Avx2Ops() == nullptr) GTEST_SKIP() << "this CPU has no AVX2";
  // SiLU of -x shows exp(-|x|) with both numerators; steps of a prime cover all exponents.
  for (uint32_t bits = 0; bits < 0x43000000u; bits += 4099 * 64) {
    std::vector<float> gate(64);
    for (uint32_t i = 0; i < 64; ++i) gate[i] = -BitsFloat(bits + 4099 * i);
    const std::vector<float> up(64, 1.0f);
    ASSERT_EQ(BitDifference(SiluMulOf(testing::ScalarOps(), gate, up, 1),
                            SiluMulOf(*testing::Avx2Ops(), gate, up, 1)),
              "");
  }
}

TEST(AddTest, Every_isa_gives_the_scalar_bits) {
  for (const Ops* ops : testing::EveryOps()) {
    for (int32_t count = 0; count < 40; ++count) {
      std::vector<float> x = TestRandom(1).Normals(count), y = TestRandom(2).Normals(count);
      std::vector<float> expected(count);
      for (int32_t i = 0; i < count; ++i) expected[i] = x[i] + y[i];
      ops->add({x.data(), y.data(), count});
      ASSERT_EQ(BitDifference(x, expected), "");
    }
  }
}

}  // namespace
}  // namespace pagoda::kernels
