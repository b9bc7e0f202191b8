#include "common/placement/predicted.h"

#include <map>

#include "gtest/gtest.h"

namespace pagoda::placement {
namespace {

WorkerView Worker(std::string name) {
  WorkerView view;
  view.name = std::move(name);
  view.max_num_seqs = 4;
  view.prefill_tokens_per_second = 1000;
  view.decode_seconds = 2;
  return view;
}

TEST(PredictedTest, TheWorkerThatHoldsThePrefixWins) {
  PredictedPolicy policy(1);
  std::vector<WorkerView> workers = {Worker("a"), Worker("b")};
  workers[1].known_tokens = 900;
  Decision decision = policy.Choose(1000, workers);
  EXPECT_EQ(decision.worker, "b");
  EXPECT_EQ(decision.reason, Reason::kPrefix);
  EXPECT_EQ(decision.known_tokens, 900u);
  EXPECT_DOUBLE_EQ(decision.wait_seconds, 0);
  EXPECT_DOUBLE_EQ(decision.prefill_seconds, 0.1);
}

TEST(PredictedTest, AWaitLongerThanThePrefixSavesGoesElsewhere) {
  PredictedPolicy policy(1);
  std::vector<WorkerView> workers = {Worker("a"), Worker("b")};
  workers[1].known_tokens = 900;
  workers[1].waiting_prefill_tokens = 899;
  EXPECT_EQ(policy.Choose(1000, workers).worker, "b");
  workers[1].waiting_prefill_tokens = 901;
  EXPECT_EQ(policy.Choose(1000, workers).worker, "a");
  EXPECT_EQ(policy.Choose(1000, workers).reason, Reason::kLoad);
}

TEST(PredictedTest, AffinityNeverBeatsSaturation) {  // R61
  PredictedPolicy policy(1);
  std::vector<WorkerView> workers = {Worker("a"), Worker("b")};
  workers[1].known_tokens = 900;  // saves 0.9 s
  workers[1].requests = workers[1].decoding = 3;
  EXPECT_EQ(policy.Choose(1000, workers).worker, "b");
  workers[1].requests = 6;  // a seat is expected after (6 - 4 + 1) * 2 / 4 = 1.5 s
  EXPECT_EQ(policy.Choose(1000, workers).worker, "a");
}

TEST(PredictedTest, AFasterWorkerTakesMore) {
  PredictedPolicy policy(1);
  std::vector<WorkerView> workers = {Worker("a"), Worker("b")};
  workers[0].prefill_tokens_per_second = 3000;
  workers[0].waiting_prefill_tokens = 1000;  // 1/3 s wait and 1/3 s run against 1 s
  EXPECT_EQ(policy.Choose(1000, workers).worker, "a");
}

TEST(PredictedTest, DecodingSequencesSlowAPrefill) {
  PredictedPolicy policy(1);
  std::vector<WorkerView> workers = {Worker("a"), Worker("b")};
  workers[0].decoding = workers[0].requests = 2;
  EXPECT_EQ(policy.Choose(1000, workers).worker, "b");
}

TEST(PredictedTest, TiesAreDrawnEvenlyAndReplayFromTheSeed) {  // R55
  std::vector<WorkerView> workers = {Worker("a"), Worker("b"), Worker("c")};
  PredictedPolicy first(5), second(5);
  std::map<std::string, int> chosen;
  for (int i = 0; i < 3000; ++i) {
    Decision decision = first.Choose(100, workers);
    EXPECT_EQ(decision.reason, Reason::kTie);
    EXPECT_EQ(decision.equals, 3u);
    EXPECT_EQ(decision.worker, second.Choose(100, workers).worker);
    ++chosen[decision.worker];
  }
  for (auto& [name, count] : chosen) EXPECT_NEAR(count, 1000, 150) << name;
}

TEST(PredictedTest, KnowingEverythingStillComputesOneToken) {
  PredictedPolicy policy(1);
  std::vector<WorkerView> workers = {Worker("a")};
  workers[0].known_tokens = 1000;
  Decision decision = policy.Choose(1000, workers);
  EXPECT_DOUBLE_EQ(decision.prefill_seconds, 0.001);
  EXPECT_EQ(decision.reason, Reason::kOnly);
}

}  // namespace
}  // namespace pagoda::placement
