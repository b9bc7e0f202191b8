#include "kernels/ops.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include "kernels/base/isa.h"

namespace pagoda::kernels {
namespace {

TEST(SelectOpsTest, Each_name_gives_its_table_and_auto_the_fastest_one) {
  const Ops* ops = nullptr;
  ASSERT_TRUE(SelectOps("scalar", &ops).ok());
  EXPECT_STREQ(ops->isa, "scalar");
  if (!DetectCpu().HasAvx2Kernels()) {
    EXPECT_EQ(SelectOps("avx2", &ops).code, KernelCode::kIsaUnavailable);
    EXPECT_EQ(SelectOps("auto", &ops).code, KernelCode::kIsaUnavailable);
    return;
  }
  ASSERT_TRUE(SelectOps("avx2", &ops).ok());
  EXPECT_STREQ(ops->isa, "avx2");
  ASSERT_TRUE(SelectOps("auto", &ops).ok());
  EXPECT_STREQ(ops->isa, "avx2");
}

TEST(SelectOpsTest, An_unknown_name_is_refused_with_the_known_ones) {
  const Ops* ops = nullptr;
  EXPECT_EQ(KernelStatusText(SelectOps("avx512", &ops)), "isa: unknown; one of scalar, avx2, auto");
  EXPECT_EQ(SelectOps("", &ops).code, KernelCode::kUnknownIsa);
  EXPECT_EQ(ops, nullptr);
}

TEST(DetectCpuTest, Agrees_with_the_compilers_own_detection) {
  const CpuFeatures features = DetectCpu();
  EXPECT_EQ(features.avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(features.fma, __builtin_cpu_supports("fma") != 0);
}

TEST(SetFloatModeTest, Brings_back_denormals_and_rounding_to_nearest) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(0xFFC0);  // flush to zero, denormals are zero, round towards zero
  SetFloatMode();
  EXPECT_EQ(_mm_getcsr(), 0x1F80u);
  _mm_setcsr(before);
}

}  // namespace
}  // namespace pagoda::kernels
