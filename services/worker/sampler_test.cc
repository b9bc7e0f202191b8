#include "services/worker/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/worker/philox.h"

namespace pagoda::worker {
namespace {

using ::testing::HasSubstr;

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

const kernels::Ops& TestOps() {
  const kernels::Ops* ops = nullptr;
  EXPECT_TRUE(kernels::SelectOps("auto", &ops).ok());
  return *ops;
}

// How often each of the tokens comes in `draws` positions.
std::map<uint32_t, int> Draw(const std::vector<float>& logits, SamplingParams params, int draws) {
  Sampler sampler(TestOps(), static_cast<int32_t>(logits.size()));
  std::map<uint32_t, int> counts;
  for (int position = 0; position < draws; ++position) {
    ++counts[sampler.Sample(logits, params, position).token];
  }
  return counts;
}

std::vector<uint32_t> Kept(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<uint32_t> kept;
  for (const auto& [token, count] : Draw(logits, params, 4000)) kept.push_back(token);
  return kept;
}

// Known answers of Random123's kat_vectors, philox4x32 10.
TEST(PhiloxTest, GivesThePublishedAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(SamplerTest, GreedyTakesTheBestAndTheLowerIdOfEquals) {
  EXPECT_EQ(Draw({1, 5, 3, 5}, {}, 10), (std::map<uint32_t, int>{{1, 10}}));
  EXPECT_EQ(Draw({-2, -1, -1}, {}, 10), (std::map<uint32_t, int>{{1, 10}}));
}

TEST(SamplerTest, DrawsFollowTheProbabilities) {
  // Probabilities 0.5, 0.25, 0.125, 0.125.
  const float ln2 = 0.69314718f;
  const int draws = 40000;
  auto counts = Draw({3 * ln2, 2 * ln2, ln2, ln2}, {.temperature = 1.0f, .seed = 7}, draws);
  const double expected[] = {0.5, 0.25, 0.125, 0.125};
  for (uint32_t i = 0; i < 4; ++i) {
    const double p = expected[i];
    // Five standard deviations.
    EXPECT_NEAR(counts[i], p * draws, 5 * std::sqrt(draws * p * (1 - p))) << i;
  }
}

TEST(SamplerTest, TemperatureSharpensAndFlattens) {
  const float ln2 = 0.69314718f;
  const int draws = 40000;
  // At temperature 0.5 the odds 2 : 1 become 4 : 1, at 2 they become sqrt(2) : 1.
  auto cold = Draw({ln2, 0}, {.temperature = 0.5f, .seed = 1}, draws);
  EXPECT_NEAR(cold[0], 0.8 * draws, 5 * std::sqrt(draws * 0.16));
  auto hot = Draw({ln2, 0}, {.temperature = 2.0f, .seed = 1}, draws);
  const double p = std::sqrt(2.0) / (1 + std::sqrt(2.0));
  EXPECT_NEAR(hot[0], p * draws, 5 * std::sqrt(draws * p * (1 - p)));
}

TEST(SamplerTest, TopKKeepsExactlyKAndPrefersLowerIds) {
  const std::vector<float> logits = {1, 2, 2, 2, 0};
  using ::testing::ElementsAre;
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_k = 1}), ElementsAre(1));
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_k = 2}), ElementsAre(1, 2));
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_k = 4}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_k = 99}), ElementsAre(0, 1, 2, 3, 4));
}

TEST(SamplerTest, TopPKeepsTheSmallestSetThatReachesIt) {
  const float ln2 = 0.69314718f;
  // Probabilities 1/2, 1/4, 1/8, 1/8; the thresholds stand clear of the sums.
  const std::vector<float> logits = {ln2, 3 * ln2, 2 * ln2, ln2};
  using ::testing::ElementsAre;
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_p = 1e-6f}), ElementsAre(1));
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_p = 0.49f}), ElementsAre(1));
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_p = 0.51f}), ElementsAre(1, 2));
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_p = 0.80f}), ElementsAre(0, 1, 2));
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_p = 0.90f}), ElementsAre(0, 1, 2, 3));
}

TEST(SamplerTest, TopPTakesEqualTokensByTheirIds) {
  std::vector<float> logits(100, 1.5f);
  logits[99] = 0.0f;
  const std::vector<uint32_t> kept = Kept(logits, {.temperature = 1, .top_p = 0.4f});
  // The 99 equal ones weigh 1 each and the last exp(-1.5), so 0.4 of all is 39.69: 40 tokens.
  EXPECT_THAT(kept, ::testing::SizeIs(40));
  EXPECT_EQ(kept.back(), 39u);
}

TEST(SamplerTest, MinPKeepsWhatIsLikelyBesideTheLikeliest) {
  const float ln2 = 0.69314718f;
  // Relative to the likeliest: 1/4, 1, 1/2, 1/8; the thresholds stand clear of them.
  const std::vector<float> logits = {ln2, 3 * ln2, 2 * ln2, 0};
  using ::testing::ElementsAre;
  EXPECT_THAT(Kept(logits, {.temperature = 1, .min_p = 0.3f}), ElementsAre(1, 2));
  EXPECT_THAT(Kept(logits, {.temperature = 1, .min_p = 0.2f}), ElementsAre(0, 1, 2));
  EXPECT_THAT(Kept(logits, {.temperature = 1, .min_p = 1}), ElementsAre(1));
  // The temperature comes first: at 2 the square roots count, 1/2, 1, 0.71, 0.35.
  EXPECT_THAT(Kept(logits, {.temperature = 2, .min_p = 0.3f}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Kept(logits, {.temperature = 2, .min_p = 0.6f}), ElementsAre(1, 2));
}

TEST(SamplerTest, TopPWorksOnWhatMinPLeft) {
  const float ln2 = 0.69314718f;
  // After min-p 0.4 the probabilities are 2/3 and 1/3: 0.6 is reached by the first alone.
  const std::vector<float> logits = {3 * ln2, 2 * ln2, ln2, ln2};
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_p = 0.6f, .min_p = 0.4f}),
              ::testing::ElementsAre(0));
}

TEST(SamplerTest, TopPWorksOnWhatTopKLeft) {
  const float ln2 = 0.69314718f;
  // After top-k 2 the probabilities are 2/3 and 1/3: 0.6 is reached by the first alone. On the
  // whole row the first has only 1/2.
  const std::vector<float> logits = {3 * ln2, 2 * ln2, ln2, ln2};
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_k = 2, .top_p = 0.6f}),
              ::testing::ElementsAre(0));
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_p = 0.6f}), ::testing::ElementsAre(0, 1));
}

TEST(SamplerTest, TopPComesAfterTemperature) {
  const float ln2 = 0.69314718f;
  // 2/3 and 1/3 become 4/5 and 1/5 at temperature 0.5.
  EXPECT_THAT(Kept({ln2, 0}, {.temperature = 0.5f, .top_p = 0.75f}), ::testing::ElementsAre(0));
  EXPECT_THAT(Kept({ln2, 0}, {.temperature = 1.0f, .top_p = 0.75f}), ::testing::ElementsAre(0, 1));
}

TEST(SamplerTest, ADrawDependsOnSeedChoiceAndPositionAlone) {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 37) * 0.1f;
  Sampler one(TestOps(), 1000), other(TestOps(), 1000);
  const SamplingParams params{.temperature = 1, .seed = 123456789012345};
  std::vector<uint32_t> forward, backward;
  for (int i = 0; i < 200; ++i) forward.push_back(one.Sample(logits, params, i).token);
  for (int i = 199; i >= 0; --i) backward.push_back(other.Sample(logits, params, i).token);
  std::reverse(backward.begin(), backward.end());
  EXPECT_EQ(forward, backward);
  EXPECT_NE(DrawUniform(1, 0, 5), DrawUniform(2, 0, 5));
  EXPECT_NE(DrawUniform(1, 0, 5), DrawUniform(uint64_t{1} << 32 | 1, 0, 5));
  EXPECT_NE(DrawUniform(1, 0, 5), DrawUniform(1, 1, 5));
  EXPECT_NE(DrawUniform(1, 0, 5), DrawUniform(1, 0, 6));
}

TEST(SamplerTest, ForbiddenTokensAreNeverChosen) {
  const std::vector<float> logits = {kForbidden, 1, kForbidden, 0};
  EXPECT_THAT(Kept(logits, {.temperature = 100}), ::testing::ElementsAre(1, 3));
  EXPECT_THAT(Kept(logits, {.temperature = 1, .top_k = 3, .top_p = 0.999f}),
              ::testing::ElementsAre(1, 3));
  Sampler sampler(TestOps(), 3);
  const std::vector<float> nothing(3, kForbidden);
  EXPECT_EQ(sampler.Sample(nothing, {}, 0).outcome, SampleOutcome::kNothingAllowed);
  EXPECT_EQ(sampler.Sample(nothing, {.temperature = 1}, 0).outcome, SampleOutcome::kNothingAllowed);
}

TEST(SamplerTest, ExtremeParametersStillChooseSomething) {
  std::vector<float> logits(500, 3e38f);
  logits[7] = -3e38f;
  for (float temperature : {1e-5f, 1.0f, 1e5f}) {
    for (float top_p : {1e-30f, 0.5f, 1.0f}) {
      for (const auto& [token, count] :
           Draw(logits, {.temperature = temperature, .top_p = top_p}, 50)) {
        EXPECT_LT(token, 500u);
        EXPECT_NE(token, 7u);
      }
    }
  }
}

TEST(SamplerTest, BadParametersAreNamed) {
  auto message = [](const SamplingParams& params) {
    return std::string(CheckSamplingParams(params).message());
  };
  EXPECT_TRUE(CheckSamplingParams({}).ok());
  EXPECT_THAT(message({.temperature = -1}), HasSubstr("temperature: -1"));
  EXPECT_THAT(message({.temperature = 1e-6f}), HasSubstr("temperature"));
  EXPECT_THAT(message({.temperature = std::nanf("")}), HasSubstr("temperature"));
  EXPECT_THAT(message({.top_k = -1}), HasSubstr("top_k: -1"));
  EXPECT_THAT(message({.top_p = 0}), HasSubstr("top_p: 0"));
  EXPECT_THAT(message({.top_p = 1.5f}), HasSubstr("top_p: 1.5"));
}

}  // namespace
}  // namespace pagoda::worker
