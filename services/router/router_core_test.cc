// Work for the text threads: taken, refused when too much waits, refused when the router stops.
#include "services/router/router_core.h"

#include "common/base/bounded_queue.h"
#include "gtest/gtest.h"

namespace pagoda::router {
namespace {

TEST(RouterCoreTest, AFullQueueIsToBeTriedAgainAndAStoppingRouterIsNotAFullQueue) {
  Executor executor({.name = "text", .threads = 1, .queue_limit = 1});
  ActiveGenerations active;
  RouterCore core{.text_executor = &executor, .active = &active};
  BoundedQueue<int> begun(1), go(1);
  auto hold = [&] {
    begun.TryPush(1);
    go.Pop();
  };
  ASSERT_TRUE(core.RunOnTextThread(hold).ok());
  begun.Pop();  // the thread is held
  bool ran = false;
  ASSERT_TRUE(core.RunOnTextThread([&] { ran = true; }).ok());
  auto never = [] { ADD_FAILURE() << "it was refused"; };
  EXPECT_EQ(core.RunOnTextThread(never).code(), absl::StatusCode::kResourceExhausted);
  active.CancelAll();
  EXPECT_EQ(core.RunOnTextThread(never).code(), absl::StatusCode::kUnavailable);
  go.Close();
  executor.Stop();
  EXPECT_TRUE(ran);
  EXPECT_EQ(core.RunOnTextThread(never).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace pagoda::router
