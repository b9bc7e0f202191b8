#include "kernels/sampling/row_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/testing/test_data.h"

namespace pagoda::kernels {
namespace {

using testing::BitDifference;
using testing::TestRandom;

TEST(ArgMaxTest, Ties_go_to_the_lower_id_wherever_they_lie) {
  for (const Ops* ops : testing::EveryOps()) {
    for (int32_t count = 1; count < 45; ++count) {
      for (int32_t first = 0; first < count; ++first) {
        for (int32_t second = first; second < count; ++second) {
          std::vector<float> x(count, -3.0f);
          x[first] = x[second] = -1.0f;
          ASSERT_EQ(ops->arg_max(x.data(), count), first) << ops->isa << " " << count;
        }
      }
    }
  }
}

TEST(ArgMaxTest, Nan_never_wins_and_masked_rows_give_the_first_id) {
  for (const Ops* ops : testing::EveryOps()) {
    for (const int32_t count : {3, 8, 19}) {
      std::vector<float> x(count, NAN);
      EXPECT_EQ(ops->arg_max(x.data(), count), 0);
      x[2] = -5.0f;
      EXPECT_EQ(ops->arg_max(x.data(), count), 2);
      x.assign(count, -INFINITY);
      EXPECT_EQ(ops->arg_max(x.data(), count), 0);
      x.assign(count, -0.0f);
      x[1] = 0.0f;
      EXPECT_EQ(ops->arg_max(x.data(), count), 0) << "-0 and +0 tie";
    }
  }
}

TEST(ArgMaxTest, Finds_the_largest_of_a_whole_vocabulary) {
  for (const Ops* ops : testing::EveryOps()) {
    std::vector<float> x = TestRandom(3).Normals(49152);
    x[31337] = 100.0f;
    EXPECT_EQ(ops->arg_max(x.data(), 49152), 31337);
  }
}

TEST(AllFiniteTest, Sees_one_bad_element_anywhere) {
  for (const Ops* ops : testing::EveryOps()) {
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
      for (int32_t at = 0; at < 37; ++at) {
        std::vector<float> x(37, 3e38f);
        ASSERT_TRUE(ops->all_finite(x.data(), 37));
        x[at] = bad;
        ASSERT_FALSE(ops->all_finite(x.data(), 37)) << at;
      }
    }
  }
}

TEST(ExpSumTest, Scalar_lies_within_its_error_bound) {
  const std::vector<float> x = TestRandom(6).Normals(1000);
  std::vector<float> e(1000);
  const float sum = testing::ScalarOps().exp_sum({x.data(), 1000, 4.0f, 0.7f, e.data()});
  double exact = 0;
  for (int i = 0; i < 1000; ++i) {
    const double term = std::exp((static_cast<double>(x[i]) - 4) * 0.7f);
    // exp's ulp, and two roundings of an exponent below 8 in size.
    ASSERT_NEAR(e[i], term, term * 18 * std::ldexp(1, -23));
    exact += term;
  }
  EXPECT_NEAR(sum, exact, exact * (18 + 1000 / 16 + 5) * std::ldexp(1, -23));
}

TEST(ExpSumTest, Masked_tokens_weigh_exactly_nothing) {
  for (const Ops* ops : testing::EveryOps()) {
    std::vector<float> x(40, -INFINITY), e(40);
    x[3] = x[37] = 2.0f;
    EXPECT_EQ(ops->exp_sum({x.data(), 40, 2.0f, 1.0f, e.data()}), 2.0f);
    for (int i = 0; i < 40; ++i) EXPECT_EQ(e[i], i == 3 || i == 37 ? 1.0f : 0.0f);
  }
}

TEST(ExpSumTest, Every_isa_gives_the_scalar_bits_with_and_without_an_output) {
  if (testing::Avx2Ops() == nullptr) GTEST_SKIP() << "this CPU has no AVX2";
  for (int32_t count = 1; count < 100; ++count) {
    std::vector<float> x = TestRandom(count).Normals(count), a(count), b(count);
    if (count > 5) x[count / 2] = -INFINITY;
    ExpSumParams params = {x.data(), count, 4.0f, 1.3f, a.data()};
    const float scalar = testing::ScalarOps().exp_sum(params);
    params.e = b.data();
    ASSERT_EQ(scalar, testing::Avx2Ops()->exp_sum(params)) << count;
    ASSERT_EQ(BitDifference(a, b), "");
    params.e = nullptr;
    ASSERT_EQ(scalar, testing::Avx2Ops()->exp_sum(params));
    params.e = x.data();
    ASSERT_EQ(scalar, testing::Avx2Ops()->exp_sum(params)) << "in place";
    ASSERT_EQ(BitDifference(a, x), "");
  }
}

}  // namespace
}  // namespace pagoda::kernels
