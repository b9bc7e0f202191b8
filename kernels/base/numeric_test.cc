#include "kernels/base/numeric.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

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

// The code whose value lies nearest to x, the even one of two: found by search among the values of
// all codes. 2^16 stands for infinity, as if halves went on beyond 65504. x is no NaN.
uint16_t NearestHalf(float x) {
  static const std::vector<double> values = [] {
    std::vector<double> all;
    for (uint32_t code = 0; code <= 0x7C00; ++code) {
      all.push_back(testing::HalfValue(static_cast<uint16_t>(code)));
    }
    return all;
  }();
  const double magnitude = std::fabs(static_cast<double>(x));
  const auto above = std::lower_bound(values.begin(), values.end() - 1, magnitude);
  auto code = static_cast<uint32_t>(above - values.begin());
  if (code > 0) {
    const double up = values[code] - magnitude, down = magnitude - values[code - 1];
    if (down < up || (down == up && code % 2 == 1)) --code;
  }
  return static_cast<uint16_t>(code | (std::signbit(x) ? 0x8000u : 0));
}

TEST(HalfTest, Every_code_survives_the_way_to_float_and_back) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const float value = HalfToFloat(static_cast<uint16_t>(code));
    if (std::isnan(value)) {
      ASSERT_EQ(FloatToHalf(value), code | 0x200u) << "NaN keeps its payload and is quiet";
    } else {
      ASSERT_EQ(FloatToHalf(value), code);
    }
  }
}

TEST(HalfTest, Floats_round_to_the_nearest_code_and_ties_to_the_even_one) {
  for (uint32_t code = 0; code < 0x7C00; ++code) {
    const double low = testing::HalfValue(static_cast<uint16_t>(code));
    const double high = testing::HalfValue(static_cast<uint16_t>(code + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(middle, (low + high) / 2) << "exact";
    for (const uint32_t bits :
         {FloatBits(static_cast<float>(low)) + 1, FloatBits(middle) - 1, FloatBits(middle),
          FloatBits(middle) + 1, FloatBits(static_cast<float>(high)) - 1}) {
      const float x = BitsFloat(bits);
      const bool up = x > middle || (x == middle && code % 2 == 1);
      ASSERT_EQ(FloatToHalf(x), code + (up ? 1 : 0)) << x;
      ASSERT_EQ(FloatToHalf(-x), (code + (up ? 1 : 0)) | 0x8000u) << x;
      ASSERT_EQ(NearestHalf(x), FloatToHalf(x)) << x;
    }
  }
}

TEST(HalfTest, Floats_of_every_exponent_round_as_the_definition_says) {
  testing::TestRandom random(3);
  for (uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (int i = 0; i < 4000; ++i) {
      const float x =
          BitsFloat((exponent << 23) | (static_cast<uint32_t>(random.Next()) & 0x807FFFFFu));
      ASSERT_EQ(FloatToHalf(x), NearestHalf(x)) << x;
    }
  }
}

TEST(HalfTest, What_is_too_large_becomes_infinity_and_never_the_largest_number) {
  EXPECT_EQ(FloatToHalf(65504.0f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65519.99609375f), 0x7BFF) << "the last float below the middle";
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7C00);
  EXPECT_EQ(FloatToHalf(-65520.0f), 0xFC00);
  EXPECT_EQ(FloatToHalf(std::numeric_limits<float>::max()), 0x7C00);
  EXPECT_EQ(FloatToHalf(-INFINITY), 0xFC00);
}

TEST(HalfTest, What_is_too_small_becomes_zero_and_keeps_its_sign) {
  EXPECT_EQ(FloatToHalf(std::ldexp(1.0f, -24)), 1) << "the smallest half";
  EXPECT_EQ(FloatToHalf(std::ldexp(1.0f, -25)), 0) << "the middle goes to the even code";
  EXPECT_EQ(FloatToHalf(std::nextafter(std::ldexp(1.0f, -25), 1.0f)), 1);
  EXPECT_EQ(FloatToHalf(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

TEST(HalfTest, No_nan_becomes_a_number) {
  for (const uint32_t bits : {0x7F800001u, 0x7FFFFFFFu, 0xFFFFFFFFu, 0xFF80FFFFu, 0x7FC00000u}) {
    EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(BitsFloat(bits))))) << bits;
  }
}

__attribute__((target("f16c"))) uint16_t HalfByInstruction(float x) {
  return static_cast<uint16_t>(
      _mm_cvtsi128_si32(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT)));
}

TEST(HalfTest, The_bits_are_those_of_the_instruction) {
  if (testing::Avx2Ops() == nullptr) GTEST_SKIP() << "this CPU has no F16C";
  testing::TestRandom random(4);
  for (int i = 0; i < 4'000'000; ++i) {
    const float x = BitsFloat(static_cast<uint32_t>(random.Next()));
    ASSERT_EQ(FloatToHalf(x), HalfByInstruction(x)) << FloatBits(x);
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
