#include "common/base/bounded_queue.h"

#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace pagoda {
namespace {

TEST(BoundedQueueTest, RefusesPastItsLimitAndLeavesTheItem) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.TryPush(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(queue.TryPush(std::move(second)));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
  EXPECT_EQ(**queue.Pop(), 1);
  EXPECT_TRUE(queue.TryPush(std::move(second)));
}

TEST(BoundedQueueTest, KeepsOrderAcrossThreads) {
  BoundedQueue<int> queue(8);
  std::thread producer([&] {
    for (int i = 0; i < 1000;) {
      if (queue.TryPush(int(i))) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
    queue.Close();
  });
  int expected = 0;
  while (auto item = queue.Pop()) EXPECT_EQ(*item, expected++);
  EXPECT_EQ(expected, 1000);
  producer.join();
}

TEST(BoundedQueueTest, CloseWakesAWaiterAndRefusesPushes) {
  BoundedQueue<int> queue(8);
  std::thread waiter([&] { EXPECT_EQ(queue.Pop(), std::nullopt); });
  queue.Close();
  waiter.join();
  EXPECT_FALSE(queue.TryPush(1));
}

TEST(BoundedQueueTest, PopUntilGivesUpAtItsDeadline) {
  BoundedQueue<int> queue(8);
  TimePoint deadline = SystemClock::Get()->Now() + std::chrono::milliseconds(5);
  EXPECT_EQ(queue.PopUntil(deadline), std::nullopt);
  EXPECT_GE(SystemClock::Get()->Now(), deadline);
}

}  // namespace
}  // namespace pagoda
