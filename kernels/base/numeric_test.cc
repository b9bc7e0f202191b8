#include "kernels/base/numeric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/testing/test_data.h"

namespace pagoda::kernels {
namespace {

TEST(HalfTest, Every_code_has_the_value_that_ieee_754_gives_it) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const auto half = static_cast<uint16_t>(code);
    const float value = HalfToFloat(half);
    if ((code & 0x7C00) != 0x7C00) {
      ASSERT_EQ(value, testing::HalfValue(half)) << code;
      ASSERT_EQ(std::signbit(value), code >= 0x8000) << code;
    } else if ((code & 0x3FF) == 0) {
      ASSERT_EQ(value, code < 0x8000 ? INFINITY : -INFINITY);
    } else {
      ASSERT_TRUE(std::isnan(value)) << code;
    }
  }
}

TEST(Bf16Test, Every_code_survives_the_way_to_float_and_back) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const float value = Bf16ToFloat(static_cast<uint16_t>(code));
    const uint16_t back = FloatToBf16(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(Bf16ToFloat(back))) << code;
    } else {
      ASSERT_EQ(back, code);
    }
  }
}

TEST(Bf16Test, Floats_round_to_the_nearest_code_and_ties_to_the_even_one) {
  for (uint32_t code = 0; code < 0x7F7F; ++code) {  // up to the largest finite pair
    const double low = BitsFloat(code << 16), high = BitsFloat((code + 1) << 16);
    for (const uint32_t rest : {1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const float value = BitsFloat(code << 16 | rest);
      const double below = value - low, above = high - value;
      const bool up = above < below || (above == below && code % 2 == 1);
      ASSERT_EQ(FloatToBf16(value), code + (up ? 1 : 0)) << code << " " << rest;
      ASSERT_EQ(FloatToBf16(-value), (code + (up ? 1 : 0)) | 0x8000u) << code << " " << rest;
    }
  }
  EXPECT_EQ(FloatToBf16(std::numeric_limits<float>::max()), 0x7F80) << "overflows to infinity";
}

TEST(Bf16Test, No_nan_becomes_a_number) {
  for (const uint32_t bits : {0x7F800001u, 0x7FFFFFFFu, 0xFFFFFFFFu, 0xFF80FFFFu, 0x7FC00000u}) {
    EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(BitsFloat(bits))))) << bits;
  }
}

// The distance between neighbouring floats at |x|.
double Ulp(double x) { return std::ldexp(1.0, std::ilogb(x) - 23); }

TEST(ExpTest, Is_within_one_ulp_from_minus_87_to_zero) {
  const uint32_t last = FloatBits(-87.0f);
  for (uint32_t bits = 0x80000000u; bits <= last; bits += 997) {
    const float x = BitsFloat(bits);
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_LE(std::fabs(Exp(x) - exact), Ulp(exact)) << x;
  }
}

TEST(ExpTest, Keeps_its_promises_at_the_ends_of_its_domain) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(-88.0f), Exp(-87.0f));
  EXPECT_EQ(Exp(-INFINITY), Exp(-87.0f));
  EXPECT_GT(Exp(-INFINITY), 0.0f);
  EXPECT_NEAR(Exp(88.0f) / std::exp(88.0), 1, 1e-6);
  for (const uint32_t nan : {0x7FC00000u, 0xFFFFFFFFu, 0x7FC0FFFFu}) {
    EXPECT_EQ(FloatBits(Exp(BitsFloat(nan))), nan);
  }
}

TEST(FoldTest, Adds_the_lanes_as_a_tree_of_halves) {
  // Powers of two far apart: any other order would lose different bits.
  float lanes[16];
  testing::TestRandom random(1);
  for (float& lane : lanes) lane = random.Normal() * std::ldexp(1.0f, random.Next() % 24);
  const auto at = [&](int j) { return lanes[j] + lanes[j + 8]; };
  const auto pair = [&](int j) { return at(j) + at(j + 4); };
  EXPECT_EQ(FoldLanes(lanes), (pair(0) + pair(2)) + (pair(1) + pair(3)));
}

}  // namespace
}  // namespace pagoda::kernels
