#include "services/router/killer_table.h"

#include "gtest/gtest.h"

namespace pagoda::router {
namespace {

TEST(FingerprintTest, OfEqualBiasesIsEqualHoweverTheyCame) {
  RequestPlan up, down;
  for (uint32_t i = 0; i < 100; ++i) {
    (*up.sampling.mutable_logit_bias())[i] = static_cast<float>(i);
    (*down.sampling.mutable_logit_bias())[99 - i] = static_cast<float>(99 - i);
  }
  EXPECT_EQ(FingerprintOf(up), FingerprintOf(down));
  (*up.sampling.mutable_logit_bias())[5] = 0;
  EXPECT_NE(FingerprintOf(up), FingerprintOf(down));
}

class KillerTableTest : public ::testing::Test {
 protected:
  static constexpr RequestFingerprint kPoison{1}, kBystander{2};

  void DiesOf(uint64_t instance, std::initializer_list<RequestFingerprint> requests) {
    for (RequestFingerprint request : requests) table_.Begin(instance, request);
    for (RequestFingerprint request : requests) table_.OnBroken(instance, request);
    table_.OnWorkerGone(instance);
  }

  ManualClock clock_;
  KillerTable table_{&clock_};
};

TEST_F(KillerTableTest, ALoneRequestThatTwoWorkersDiedOfIsRefusedForTenMinutes) {
  DiesOf(1, {kPoison});
  EXPECT_FALSE(table_.Refused(kPoison));
  DiesOf(2, {kPoison});
  EXPECT_TRUE(table_.Refused(kPoison));
  EXPECT_FALSE(table_.Refused(kBystander));
  clock_.Advance(KillerTable::kMemory);
  EXPECT_TRUE(table_.Refused(kPoison));
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_FALSE(table_.Refused(kPoison));
}

TEST_F(KillerTableTest, ABystanderOfTwoDeathsGoesOnAndAPoisonThatWasOnceAloneDoesNot) {
  DiesOf(1, {kPoison, kBystander});
  DiesOf(2, {kPoison, kBystander});
  EXPECT_FALSE(table_.Refused(kBystander));
  DiesOf(3, {kPoison});
  EXPECT_TRUE(table_.Refused(kPoison));
  EXPECT_FALSE(table_.Refused(kBystander));
}

TEST_F(KillerTableTest, CompanyHidesAPoisonForThreeWorkersAtMost) {
  for (uint64_t instance : {1, 2, 3}) {
    EXPECT_FALSE(table_.Refused(kPoison));
    DiesOf(instance, {kPoison, RequestFingerprint{10 + instance}});
  }
  EXPECT_TRUE(table_.Refused(kPoison));
  EXPECT_FALSE(table_.Refused(RequestFingerprint{11}));
}

TEST_F(KillerTableTest, OneWorkerCountsOnceHoweverItsDeathShows) {
  table_.Begin(1, kPoison);
  table_.OnWorkerHangs(1);  // frozen
  table_.OnWorkerHangs(1);
  table_.OnBroken(1, kPoison);
  table_.OnWorkerGone(1);
  EXPECT_FALSE(table_.Refused(kPoison));
}

TEST_F(KillerTableTest, AHangCountsLikeADeath) {
  for (uint64_t instance : {1, 2}) {
    table_.Begin(instance, kPoison);
    table_.OnWorkerHangs(instance);
    table_.End(instance, kPoison);
  }
  EXPECT_TRUE(table_.Refused(kPoison));
}

TEST_F(KillerTableTest, AConnectionThatBreaksUnderALivingWorkerIsNobodysFault) {
  for (uint64_t instance : {1, 2}) {
    table_.Begin(instance, kPoison);
    table_.OnBroken(instance, kPoison);
  }
  EXPECT_TRUE(table_.Refused(kPoison));
  table_.OnReport(1);  // may have been under way
  EXPECT_TRUE(table_.Refused(kPoison));
  table_.OnReport(1);
  EXPECT_FALSE(table_.Refused(kPoison));
}

TEST_F(KillerTableTest, ADrainedWorkerIsNobodysFault) {
  for (uint64_t instance : {1, 2, 3}) {
    table_.Begin(instance, kPoison);
    table_.OnBroken(instance, kPoison);
    table_.OnWorkerLeft(instance);
  }
  EXPECT_FALSE(table_.Refused(kPoison));
}

TEST_F(KillerTableTest, ARequestThatFinishesClearsItsName) {
  DiesOf(1, {kPoison});
  table_.OnFinished(kPoison);
  DiesOf(2, {kPoison});
  EXPECT_FALSE(table_.Refused(kPoison));
}

TEST_F(KillerTableTest, TheNumberOfSuspectsIsBoundedAndTheOldestGoFirst) {
  DiesOf(1, {kPoison});
  for (uint64_t i = 0; i < KillerTable::kMaxSuspects; ++i) {
    clock_.Advance(std::chrono::nanoseconds(1));
    DiesOf(2, {RequestFingerprint{100 + i}});
  }
  DiesOf(3, {kPoison});
  EXPECT_FALSE(table_.Refused(kPoison));  // its first death is forgotten
}

TEST(RequestFingerprintTest, ItIsThePromptAndTheParametersButNotTheSeed) {
  RequestPlan plan;
  plan.prompt_ids = {1, 2, 3};
  plan.sampling.set_seed(4);
  RequestPlan other = plan;
  other.sampling.set_seed(5);
  other.request_id = "another";
  EXPECT_EQ(FingerprintOf(plan), FingerprintOf(other));
  other.prompt_ids = {1, 2, 4};
  EXPECT_NE(FingerprintOf(plan), FingerprintOf(other));
  other = plan;
  other.sampling.set_temperature(0.5);
  EXPECT_NE(FingerprintOf(plan), FingerprintOf(other));
}

}  // namespace
}  // namespace pagoda::router
