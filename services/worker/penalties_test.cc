#include "services/worker/penalties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace pagoda::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

std::vector<float> Apply(const PenaltyParams& params, std::vector<float> logits,
                         std::vector<TokenId> prompt, std::vector<TokenId> output,
                         std::vector<TokenId> stop_ids = {}) {
  Penalties penalties(params, stop_ids, prompt);
  for (TokenId token : output) penalties.Append(token);
  penalties.Apply(logits);
  return logits;
}

TEST(PenaltiesTest, RepetitionDividesWhatIsLikelyAndMultipliesTheRestOnceAToken) {
  // As RepetitionPenaltyLogitsProcessor of `transformers`: score < 0 ? score * p : score / p.
  EXPECT_THAT(Apply({.repetition_penalty = 2}, {4, -3, 5, 1, 0}, {0, 0, 1}, {3, 3}),
              ElementsAre(2, -6, 5, 0.5, 0));
}

TEST(PenaltiesTest, PresenceAndFrequencyCountOutputTokensOnly) {
  // As OpenAI's API: mu - count * frequency - (count > 0) * presence.
  EXPECT_THAT(Apply({.frequency_penalty = 0.5, .presence_penalty = 1}, {4, 4, 4, -4}, {0, 0, 3},
                    {1, 2, 2, 2}),
              ElementsAre(4, 4 - 0.5 - 1, 4 - 1.5 - 1, -4));
  EXPECT_THAT(Apply({.frequency_penalty = -2}, {1, 1}, {}, {0, 0}), ElementsAre(5, 1));
}

TEST(PenaltiesTest, NoStopTokenComesBeforeMinTokens) {
  const PenaltyParams params{.min_tokens = 2};
  EXPECT_THAT(Apply(params, {1, 2, 3}, {0}, {}, {2, 0}), ElementsAre(kForbidden, 2, kForbidden));
  EXPECT_THAT(Apply(params, {1, 2, 3}, {0}, {1}, {2}), ElementsAre(1, 2, kForbidden));
  EXPECT_THAT(Apply(params, {1, 2, 3}, {0}, {1, 1}, {2}), ElementsAre(1, 2, 3));
}

TEST(PenaltiesTest, TheOrderIsMinTokensBiasRepetitionFrequencyPresence) {
  // Token 0: (-1 + 3) / 2 - 2 * 0.25 - 0.125; the repetition penalty first would give
  // -1 * 2 + 3. Token 1 is a stop token: a bias does not bring it back.
  const PenaltyParams params{.min_tokens = 9,
                             .logit_bias = {{0, 3}, {1, 100}, {2, -1}},
                             .repetition_penalty = 2,
                             .frequency_penalty = 0.25,
                             .presence_penalty = 0.125};
  EXPECT_THAT(Apply(params, {-1, 5, 7, 1}, {}, {0, 0}, {1}),
              ElementsAre(0.375, kForbidden, 6, 1));
}

TEST(PenaltiesTest, WhatIsForbiddenStaysSoAndNothingOverflows) {
  const float huge = std::numeric_limits<float>::max();
  const PenaltyParams params{.logit_bias = {{0, 100}}, .repetition_penalty = 0.01f};
  EXPECT_THAT(Apply(params, {kForbidden, huge}, {0, 1}, {}), ElementsAre(kForbidden, huge));
}

TEST(PenaltiesTest, BadValuesAreRefusedByName) {
  const float nan = std::nanf("");
  auto error = [](const PenaltyParams& params) {
    return std::string(CheckPenaltyParams(params, 100, 10).message());
  };
  EXPECT_EQ(error({.min_tokens = 10, .logit_bias = {{99, -100}}, .repetition_penalty = 0.01f}), "");
  EXPECT_THAT(error({.min_tokens = 11}), HasSubstr("min_tokens: 11 is over max_tokens 10"));
  EXPECT_THAT(error({.logit_bias = {{100, 1}}}), HasSubstr("logit_bias: token 100"));
  EXPECT_THAT(error({.logit_bias = {{1, 100.5f}}}), HasSubstr("logit_bias: 100.5"));
  EXPECT_THAT(error({.logit_bias = {{1, nan}}}), HasSubstr("logit_bias"));
  EXPECT_THAT(error({.repetition_penalty = 0}), HasSubstr("repetition_penalty"));
  EXPECT_THAT(error({.repetition_penalty = nan}), HasSubstr("repetition_penalty"));
  EXPECT_THAT(error({.frequency_penalty = 2.1f}), HasSubstr("frequency_penalty"));
  EXPECT_THAT(error({.presence_penalty = -2.1f}), HasSubstr("presence_penalty"));
}

}  // namespace
}  // namespace pagoda::worker
