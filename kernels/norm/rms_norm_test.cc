#include "kernels/norm/rms_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/testing/test_data.h"

namespace pagoda::kernels {
namespace {

using testing::BitDifference;
using testing::TestRandom;

struct Result {
  std::vector<float> x, y;
};

Result Norm(const Ops& ops, std::vector<float> x, const std::vector<float>& add, int32_t rows,
            int32_t cols) {
  const int64_t stride = static_cast<int64_t>(x.size()) / rows;
  const std::vector<float> weight = TestRandom(77).Normals(cols);
  Result result{std::move(x), std::vector<float>(rows * stride)};
  ops.rms_norm({.x = result.x.data(),
                .x_stride = stride,
                .add = add.empty() ? nullptr : add.data(),
                .add_stride = cols,
                .weight = weight.data(),
                .y = result.y.data(),
                .y_stride = stride,
                .rows = rows,
                .cols = cols,
                .eps = 1e-5f});
  return result;
}

TEST(RmsNormTest, Scalar_lies_within_its_error_bound) {
  for (const int32_t cols : {1, 15, 16, 17, 576, 1000}) {
    const std::vector<float> x = TestRandom(cols).Normals(cols);
    const std::vector<float> weight = TestRandom(77).Normals(cols);
    const Result got = Norm(testing::ScalarOps(), x, {}, 1, cols);
    double squares = 0;
    for (const float value : x) squares += static_cast<double>(value) * value;
    const double scale = 1 / std::sqrt(squares / cols + 1e-5);
    for (int32_t i = 0; i < cols; ++i) {
      // A lane adds cols/16 + 1 squares, the fold 4 times; all terms are positive, so the sum's
      // relative error is that many roundings, halved by the root; then six more roundings.
      const double bound = (cols / 32.0 + 10) * std::ldexp(1, -24);
      const double exact = weight[i] * (x[i] * scale);
      ASSERT_NEAR(got.y[i], exact, std::fabs(exact) * bound) << cols << " " << i;
    }
  }
}

TEST(RmsNormTest, The_residual_is_added_once_and_kept) {
  const std::vector<float> x = TestRandom(1).Normals(3 * 50), add = TestRandom(2).Normals(3 * 50);
  for (const Ops* ops : testing::EveryOps()) {
    std::vector<float> sum = x;
    ops->add({sum.data(), add.data(), 150});
    for (int i = 0; i < 150; ++i) ASSERT_EQ(sum[i], x[i] + add[i]);
    const Result fused = Norm(*ops, x, add, 3, 50), apart = Norm(*ops, sum, {}, 3, 50);
    EXPECT_EQ(BitDifference(fused.x, sum), "");
    EXPECT_EQ(BitDifference(fused.y, apart.y), "");
    EXPECT_EQ(BitDifference(apart.x, sum), "") << "x is only read when nothing is added";
  }
}

TEST(RmsNormTest, Every_isa_gives_the_scalar_bits) {
  if (testing::Avx2Ops() == nullptr) GTEST_SKIP() << "this CPU has no AVX2";
  for (int32_t cols = 1; cols <= 100; ++cols) {
    const int32_t width = cols == 100 ? 576 : cols;
    const std::vector<float> x = TestRandom(cols).Normals(3 * (width + 2));
    const std::vector<float> add = TestRandom(cols + 1).Normals(3 * width);
    const Result a = Norm(testing::ScalarOps(), x, add, 3, width);
    const Result b = Norm(*testing::Avx2Ops(), x, add, 3, width);
    ASSERT_EQ(BitDifference(a.x, b.x), "") << width;
    ASSERT_EQ(BitDifference(a.y, b.y), "") << width;
  }
}

TEST(RmsNormTest, May_write_over_its_input) {
  for (const Ops* ops : testing::EveryOps()) {
    std::vector<float> x = TestRandom(4).Normals(70), y(70);
    const std::vector<float> weight = TestRandom(5).Normals(70);
    RmsNormParams params = {
        .x = x.data(), .weight = weight.data(), .y = y.data(), .rows = 1, .cols = 70, .eps = 1e-6f};
    ops->rms_norm(params);
    params.y = x.data();
    ops->rms_norm(params);
    EXPECT_EQ(BitDifference(x, y), "");
  }
}

}  // namespace
}  // namespace pagoda::kernels
