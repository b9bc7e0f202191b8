#include "services/worker/prefill_rate.h"

#include <gtest/gtest.h>

namespace pagoda::worker {
namespace {

TEST(PrefillRateTest, StartsWithTheSelfTestAndFollowsWhatIsMeasured) {
  PrefillRate rate(1000);
  EXPECT_EQ(rate.Predict(500), std::chrono::milliseconds(500));
  for (int i = 0; i < 100; ++i) rate.Observe(200, std::chrono::milliseconds(100));
  EXPECT_NEAR(rate.tokens_per_second(), 2000, 1);
  EXPECT_NEAR(ToSeconds(rate.Predict(500)), 0.25, 0.001);
}

TEST(PrefillRateTest, SmallStepsAndStandingClocksTeachNothing) {
  PrefillRate rate(1000);
  rate.Observe(PrefillRate::kMinRows - 1, std::chrono::nanoseconds(1));
  rate.Observe(512, Duration::zero());
  EXPECT_EQ(rate.tokens_per_second(), 1000);
}

TEST(PrefillRateTest, AnAbsurdRateStillGivesABoundedWait) {
  EXPECT_LE(PrefillRate(0).Predict(INT64_MAX), std::chrono::hours(1));
}

}  // namespace
}  // namespace pagoda::worker
