#include "services/ctl/thread_share.h"

#include "gtest/gtest.h"

namespace pagoda::ctl {
namespace {

TEST(ThreadShareTest, OneCpuIsLeftAndTheRestIsDivided) {
  EXPECT_EQ(ThreadShare(16, 1), 15);
  EXPECT_EQ(ThreadShare(16, 2), 7);
  EXPECT_EQ(ThreadShare(16, 4), 3);
}

TEST(ThreadShareTest, EveryWorkerHasAThread) {
  EXPECT_EQ(ThreadShare(1, 1), 1);
  EXPECT_EQ(ThreadShare(2, 2), 1);
  EXPECT_EQ(ThreadShare(4, 64), 1);
}

}  // namespace
}  // namespace pagoda::ctl
