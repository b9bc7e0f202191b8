#include "services/worker/sequence.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "services/worker/testing/test_sequences.h"

namespace pagoda::worker {
namespace {

using testing::MakeSequence;
using testing::Request;
using testing::Tokens;

TEST(SequenceTest, TheLastTokenIsNeverMatched) {
  EXPECT_EQ(MakeSequence(1, Request(Tokens(8), 1), 4)->matchable().size(), 1u);
  EXPECT_EQ(MakeSequence(1, Request(Tokens(9), 1), 4)->matchable().size(), 2u);
  EXPECT_EQ(MakeSequence(1, Request(Tokens(1), 1), 4)->matchable().size(), 0u);
}

TEST(SequenceTest, AnUncachedRequestHasNoKeys) {
  GenerationRequest request = Request(Tokens(9), 1);
  request.cache.scope = CacheScope::None();
  auto sequence = MakeSequence(1, std::move(request), 4);
  EXPECT_TRUE(sequence->refs().empty());
  EXPECT_TRUE(sequence->matchable().empty());
}

TEST(SequenceTest, GeneratedTokensMakeKeysAsBlocksFill) {
  auto sequence = MakeSequence(1, Request(Tokens(7), 10), 4);
  EXPECT_EQ(sequence->refs().size(), 1u);
  sequence->Append(7);
  EXPECT_EQ(sequence->refs().size(), 2u);
  // The same key as that of a prompt with these tokens.
  EXPECT_EQ(sequence->refs()[1].key, MakeSequence(2, Request(Tokens(9), 1), 4)->refs()[1].key);
}

TEST(SequenceTest, EndsAtAStopTokenOrAtItsLimit) {
  GenerationRequest request = Request(Tokens(3), 3);
  request.stop_token_ids = {40, 41};
  auto sequence = MakeSequence(1, request, 4);
  EXPECT_FALSE(sequence->Append(5));
  EXPECT_FALSE(sequence->Append(5));
  EXPECT_EQ(sequence->Append(5), FinishReason::kLength);
  sequence = MakeSequence(1, request, 4);
  EXPECT_EQ(sequence->Append(41), FinishReason::kStop);
}

TEST(SequenceTest, R70PenaltiesAreTheSameWhetherTokensCameHereOrInAnEarlierAttempt) {
  GenerationRequest request = Request(Tokens(4), 9);
  EXPECT_EQ(MakeSequence(1, request, 4)->penalties(), nullptr);
  request.penalties = {.min_tokens = 3,
                       .logit_bias = {{6, 0.5f}},
                       .repetition_penalty = 1.5f,
                       .frequency_penalty = 0.25f,
                       .presence_penalty = 0.75f};
  request.stop_token_ids = {7};
  auto here = MakeSequence(1, request, 4);
  for (TokenId token : {5, 6, 5}) here->Append(token);
  request.output_ids = {5, 6};
  auto elsewhere = MakeSequence(2, request, 4);
  std::vector<float> a(8, 2.0f), b(8, 2.0f);
  elsewhere->penalties()->Apply(b);
  EXPECT_EQ(b[7], -std::numeric_limits<float>::infinity()) << "two tokens are too few";
  elsewhere->Append(5);
  b.assign(8, 2.0f);
  here->penalties()->Apply(a);
  elsewhere->penalties()->Apply(b);
  EXPECT_EQ(a, b);
  EXPECT_EQ(a[7], 2.0f);
  EXPECT_EQ(a[5], 2.0f / 1.5f - 2 * 0.25f - 0.75f);
}

TEST(SequenceTest, TokensOfAnEarlierAttemptCountAgainstTheLimitButAreNotPrompt) {
  GenerationRequest request = Request(Tokens(6), 3);
  request.output_ids = {90, 91};
  auto sequence = MakeSequence(1, request, 4);
  EXPECT_EQ(sequence->num_tokens(), 8);
  EXPECT_EQ(sequence->prompt_length(), 6);
  EXPECT_EQ(sequence->refs().size(), 2u);
  sequence->table.Set(0, {BlockId{0}, BlockState::kComputing, BlockSource::kComputed});
  sequence->table.Set(1, {BlockId{1}, BlockState::kComputing, BlockSource::kComputed});
  sequence->Account(0, 8);
  EXPECT_EQ(sequence->usage().computed, 6u);
  EXPECT_EQ(sequence->usage().recomputed, 2u);
  EXPECT_EQ(sequence->Append(92), FinishReason::kLength);
  EXPECT_EQ(sequence->usage().completion_tokens, 3u);
}

TEST(SequenceTest, TokensOfAnEarlierAttemptThatAreReusedCountByTheirSource) {
  GenerationRequest request = Request(Tokens(6), 9);
  request.output_ids = {90, 91, 92, 93};
  auto sequence = MakeSequence(1, request, 4);
  sequence->table.Set(0, {BlockId{0}, BlockState::kReady, BlockSource::kLocal});
  sequence->table.Set(1, {BlockId{1}, BlockState::kReady, BlockSource::kRam});
  sequence->table.Set(2, {BlockId{2}, BlockState::kComputing, BlockSource::kComputed});
  sequence->Account(0, 8);
  sequence->Account(8, 10);
  GenerationUsage usage = sequence->usage();
  EXPECT_EQ(usage.local, 4u);
  EXPECT_EQ(usage.ram, 4u);  // two of the prompt, two delivered ones
  EXPECT_EQ(usage.computed, 0u);
  EXPECT_EQ(usage.recomputed, 2u);  // 6 + 4 - 8
}

// R65
TEST(SequenceTest, EachPromptTokenIsCountedOnceByItsSourceAlsoAfterAPreemption) {
  auto sequence = MakeSequence(1, Request(Tokens(14), 4), 4);
  sequence->table.Set(0, {BlockId{0}, BlockState::kReady, BlockSource::kLocal});
  sequence->table.Set(1, {BlockId{1}, BlockState::kReady, BlockSource::kRam});
  sequence->table.Set(2, {BlockId{2}, BlockState::kComputing, BlockSource::kComputed});
  EXPECT_FALSE(sequence->Account(0, 10));
  // Preempted: found its first block again, and computes the rest.
  sequence->table.Clear();
  sequence->table.Set(0, {BlockId{0}, BlockState::kReady, BlockSource::kLocal});
  EXPECT_FALSE(sequence->Account(0, 4));
  EXPECT_TRUE(sequence->Account(4, 14));
  EXPECT_FALSE(sequence->Account(14, 14));
  GenerationUsage usage = sequence->usage();
  EXPECT_EQ(usage.local, 4u);
  EXPECT_EQ(usage.ram, 4u);
  EXPECT_EQ(usage.computed, 6u);    // 8, 9 at first, 10 to 13 later
  EXPECT_EQ(usage.recomputed, 6u);  // 4 to 9
}

TEST(SequenceTest, HigherPriorityGoesFirstThenTheOlderAndWaitingElsewhereCounts) {
  auto at = [](int seconds) { return TimePoint(std::chrono::seconds(seconds)); };
  auto early = MakeSequence(1, Request(Tokens(3), 1), 4, at(100));
  auto late = MakeSequence(2, Request(Tokens(3), 1), 4, at(101));
  GenerationRequest urgent_request = Request(Tokens(3), 1);
  urgent_request.priority = 1;
  auto urgent = MakeSequence(3, urgent_request, 4, at(102));
  GenerationRequest aged_request = Request(Tokens(3), 1);
  aged_request.age = std::chrono::seconds(5);
  auto aged = MakeSequence(4, aged_request, 4, at(103));
  EXPECT_TRUE(Before(*early, *late));
  EXPECT_FALSE(Before(*late, *early));
  EXPECT_TRUE(Before(*urgent, *early));
  EXPECT_TRUE(Before(*aged, *early));
  EXPECT_TRUE(Before(*urgent, *aged));
}

}  // namespace
}  // namespace pagoda::worker
