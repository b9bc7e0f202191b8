#include "common/base/executor.h"

#include <atomic>
#include <future>

#include "gtest/gtest.h"

namespace pagoda {
namespace {

TEST(ExecutorTest, StopRunsEverythingThatWasAccepted) {
  std::atomic<int> runs = 0;
  Executor executor({.name = "test", .threads = 2, .queue_limit = 1000});
  int accepted = 0;
  for (int i = 0; i < 500; ++i) accepted += executor.TryRun([&] { ++runs; });
  executor.Stop();
  EXPECT_EQ(runs, accepted);
  EXPECT_EQ(accepted, 500);
}

TEST(ExecutorTest, RefusesWhenFullAndAfterStop) {
  std::promise<void> gate;
  std::promise<void> started;
  Executor executor({.name = "test", .threads = 1, .queue_limit = 1});
  ASSERT_TRUE(executor.TryRun([&] {
    started.set_value();
    gate.get_future().wait();
  }));
  started.get_future().wait();
  EXPECT_TRUE(executor.TryRun([] {}));
  EXPECT_FALSE(executor.TryRun([] {}));
  gate.set_value();
  executor.Stop();
  EXPECT_FALSE(executor.TryRun([] {}));
}

}  // namespace
}  // namespace pagoda
