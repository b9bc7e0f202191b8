#include "common/placement/least_loaded.h"

#include <map>

#include "gtest/gtest.h"

namespace pagoda::placement {
namespace {

TEST(LeastLoadedTest, FewestRequestsWinWhateverTheCacheHolds) {
  LeastLoadedPolicy policy(1);
  std::vector<WorkerView> workers(3);
  for (int i = 0; i < 3; ++i) workers[i].name = "w" + std::to_string(i);
  workers[0].requests = 2;
  workers[0].known_tokens = 1000;
  workers[1].requests = 1;
  workers[2].requests = 3;
  Decision decision = policy.Choose(1001, workers);
  EXPECT_EQ(decision.worker, "w1");
  EXPECT_EQ(decision.reason, Reason::kLoad);
  EXPECT_EQ(decision.candidates, 3u);
}

TEST(LeastLoadedTest, EqualsAreDrawnEvenly) {
  LeastLoadedPolicy policy(7);
  std::vector<WorkerView> workers(4);
  for (int i = 0; i < 4; ++i) workers[i].name = "w" + std::to_string(i);
  workers[3].requests = 1;
  std::map<std::string, int> chosen;
  for (int i = 0; i < 3000; ++i) {
    Decision decision = policy.Choose(10, workers);
    EXPECT_EQ(decision.reason, Reason::kTie);
    ++chosen[decision.worker];
  }
  // Binomial(3000, 1/3) has a standard deviation of 26.
  for (const char* name : {"w0", "w1", "w2"}) EXPECT_NEAR(chosen[name], 1000, 150);
  EXPECT_EQ(chosen["w3"], 0);
}

}  // namespace
}  // namespace pagoda::placement
