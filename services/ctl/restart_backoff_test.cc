#include "services/ctl/restart_backoff.h"

#include <vector>

#include "gtest/gtest.h"

namespace pagoda::ctl {
namespace {

using std::chrono::milliseconds;

TEST(RestartBackoffTest, WaitsDoubleFromHalfASecondToTen) {
  RestartBackoff backoff;
  TimePoint now{};
  for (int wait_ms : {500, 1000, 2000, 4000, 8000, 10000, 10000}) {
    EXPECT_EQ(backoff.OnEnd(now), milliseconds(wait_ms));
  }
}

TEST(RestartBackoffTest, BeingReadyForAWhileStartsOver) {
  RestartBackoff backoff;
  TimePoint now{};
  backoff.OnEnd(now);
  backoff.OnReady(now);
  EXPECT_EQ(backoff.OnEnd(now + RestartBackoff::kSteadyTime - milliseconds(1)), milliseconds(1000));
  backoff.OnReady(now);
  EXPECT_EQ(backoff.OnEnd(now + RestartBackoff::kSteadyTime), milliseconds(500));
}

TEST(RestartBackoffTest, TimeBeforeItWasReadyDoesNotCount) {
  RestartBackoff backoff;
  TimePoint now{};
  backoff.OnReady(now);
  backoff.OnEnd(now);
  // It never became ready, however long it took.
  EXPECT_EQ(backoff.OnEnd(now + 10 * RestartBackoff::kSteadyTime), milliseconds(1000));
}

}  // namespace
}  // namespace pagoda::ctl
