#include "common/placement/round_robin.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda::placement {
namespace {

std::vector<WorkerView> Named(std::vector<std::string> names) {
  std::vector<WorkerView> workers;
  for (auto& name : names) workers.emplace_back().name = std::move(name);
  return workers;
}

TEST(RoundRobinTest, GoesAroundByName) {
  RoundRobinPolicy policy;
  auto workers = Named({"a", "b", "c"});
  std::vector<std::string> chosen;
  for (int i = 0; i < 7; ++i) chosen.push_back(policy.Choose(1, workers).worker);
  EXPECT_THAT(chosen, testing::ElementsAre("a", "b", "c", "a", "b", "c", "a"));
}

TEST(RoundRobinTest, KeepsItsPlaceWhenWorkersComeAndGo) {
  RoundRobinPolicy policy;
  EXPECT_EQ(policy.Choose(1, Named({"a", "b", "c"})).worker, "a");
  EXPECT_EQ(policy.Choose(1, Named({"b", "c"})).worker, "b");
  EXPECT_EQ(policy.Choose(1, Named({"a", "bb", "c"})).worker, "bb");
  EXPECT_EQ(policy.Choose(1, Named({"a"})).reason, Reason::kOnly);
}

}  // namespace
}  // namespace pagoda::placement
