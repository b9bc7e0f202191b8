#include "kernels/rope/rope.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "kernels/rope/rope_table.h"
#include "kernels/testing/test_data.h"

namespace pagoda::kernels {
namespace {

using testing::BitDifference;
using testing::TestRandom;

struct InvFreqVector {
  float base;
  int32_t rotary_dim, pair;
  uint32_t inv_freq;
};
struct RopeRowVector {
  int32_t position, pair;
  uint32_t cos, sin;
};
#include "kernels/rope/rope_vectors.inc"

TEST(RopeTableTest, Inverse_frequencies_equal_those_of_sixty_digit_arithmetic) {
  for (const InvFreqVector& vector : kInvFreqVectors) {
    std::vector<float> inv_freq(vector.rotary_dim / 2);
    RopeInvFreq(vector.base, vector.rotary_dim, inv_freq.data());
    EXPECT_EQ(std::bit_cast<uint32_t>(inv_freq[vector.pair]), vector.inv_freq)
        << vector.base << " " << vector.rotary_dim << " " << vector.pair;
  }
}

TEST(RopeTableTest, Cosines_and_sines_equal_those_of_sixty_digit_arithmetic) {
  std::vector<float> inv_freq(32), cos(32), sin(32);
  RopeInvFreq(100000.0f, 64, inv_freq.data());
  for (const RopeRowVector& vector : kRopeRowVectors) {
    RopeRow(inv_freq.data(), 32, vector.position, cos.data(), sin.data());
    EXPECT_EQ(std::bit_cast<uint32_t>(cos[vector.pair]), vector.cos)
        << vector.position << " " << vector.pair;
    EXPECT_EQ(std::bit_cast<uint32_t>(sin[vector.pair]), vector.sin)
        << vector.position << " " << vector.pair;
  }
}

TEST(RopeTableTest, Angles_up_to_the_largest_position_keep_half_an_ulp) {
  // glibc's double sin and cos are within 1 ulp of double, far below a float's.
  TestRandom random(1);
  for (int i = 0; i < 100000; ++i) {
    const float inv_freq = random.Uniform(1e-6f, 1.0f);
    const auto position = static_cast<int32_t>(random.Next() % (kMaxRopePosition + 1));
    float cos, sin;
    RopeRow(&inv_freq, 1, position, &cos, &sin);
    const double angle = static_cast<float>(position) * inv_freq;
    ASSERT_EQ(cos, static_cast<float>(std::cos(angle))) << angle;
    ASSERT_EQ(sin, static_cast<float>(std::sin(angle))) << angle;
  }
}

std::vector<float> RunRope(const Ops& ops, const std::vector<float>& x, int32_t rows, int32_t heads,
                           int32_t head_dim, int32_t rotary_dim, RopeOrder order) {
  const int32_t pairs = rotary_dim / 2;
  std::vector<float> inv_freq(pairs), cos(rows * pairs), sin(rows * pairs), y = x;
  RopeInvFreq(10000.0f, rotary_dim, inv_freq.data());
  for (int32_t row = 0; row < rows; ++row) {
    RopeRow(inv_freq.data(), pairs, 17 * row + 3, &cos[row * pairs], &sin[row * pairs]);
  }
  ops.rope({y.data(), static_cast<int64_t>(x.size()) / rows, cos.data(), sin.data(), rows, heads,
            head_dim, rotary_dim, order});
  return y;
}

TEST(RopeTest, Adjacent_pairs_and_split_halves_rotate_the_same_pairs_of_numbers) {
  const std::vector<float> x = TestRandom(2).Normals(64);
  std::vector<float> split(64);
  for (int i = 0; i < 32; ++i) {
    split[i] = x[2 * i];
    split[i + 32] = x[2 * i + 1];
  }
  for (const Ops* ops : testing::EveryOps()) {
    const auto a = RunRope(*ops, x, 1, 1, 64, 64, RopeOrder::kAdjacent);
    const auto b = RunRope(*ops, split, 1, 1, 64, 64, RopeOrder::kHalfSplit);
    for (int i = 0; i < 32; ++i) {
      const float angle = 3 * static_cast<float>(1 / std::pow(10000.0, i / 32.0));
      EXPECT_NEAR(a[2 * i], x[2 * i] * std::cos(angle) - x[2 * i + 1] * std::sin(angle), 2e-6);
      EXPECT_NEAR(a[2 * i + 1], x[2 * i + 1] * std::cos(angle) + x[2 * i] * std::sin(angle), 2e-6);
      EXPECT_EQ(a[2 * i], b[i]);
      EXPECT_EQ(a[2 * i + 1], b[i + 32]);
    }
  }
}

TEST(RopeTest, Elements_behind_rotary_dim_stay_as_they_are) {
  const std::vector<float> x = TestRandom(3).Normals(3 * 2 * 48);
  for (const Ops* ops : testing::EveryOps()) {
    for (const RopeOrder order : {RopeOrder::kAdjacent, RopeOrder::kHalfSplit}) {
      const auto y = RunRope(*ops, x, 3, 2, 48, 20, order);
      for (int i = 0; i < 288; ++i) {
        if (i % 48 >= 20) {
          ASSERT_EQ(y[i], x[i]);
        } else {
          ASSERT_NE(y[i], x[i]);
        }
      }
    }
  }
}

TEST(RopeTest, Every_isa_gives_the_scalar_bits) {
  if (testing::Avx2Ops() == nullptr) GTEST_SKIP() << "this CPU has no AVX2";
  for (const RopeOrder order : {RopeOrder::kAdjacent, RopeOrder::kHalfSplit}) {
    for (const int32_t head_dim : {16, 64, 80, 128}) {
      for (int32_t rotary_dim = 2; rotary_dim <= head_dim; rotary_dim += 6) {
        const std::vector<float> x = TestRandom(rotary_dim).Normals(3 * (2 * head_dim + 1));
        ASSERT_EQ(BitDifference(RunRope(testing::ScalarOps(), x, 3, 2, head_dim, rotary_dim, order),
                                RunRope(*testing::Avx2Ops(), x, 3, 2, head_dim, rotary_dim, order)),
                  "")
            << head_dim << " " << rotary_dim;
      }
    }
  }
}

}  // namespace
}  // namespace pagoda::kernels
