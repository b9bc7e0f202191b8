#include "tests/exactness/answer.h"

#include <gtest/gtest.h>

namespace pagoda::exactness {
namespace {

Answer Right() {
  Answer answer{.tokens = {5, 6, 7}, .logits = {{1, 2}, {3, 4}, {0, -0.0f}}};
  answer.result.status = absl::OkStatus();
  return answer;
}

// The last `count` tokens of the right answer: what a worker says that goes on with it.
Answer Last(size_t count) {
  Answer answer = Right();
  answer.tokens.erase(answer.tokens.begin(), answer.tokens.end() - count);
  answer.logits.erase(answer.logits.begin(), answer.logits.end() - count);
  return answer;
}

TEST(DifferenceTest, EqualAnswersDoNotDiffer) {
  EXPECT_EQ(Difference(Right(), Right(), 0), "");
  EXPECT_EQ(Difference(Right(), Last(1), 2), "");
}

TEST(DifferenceTest, OneBitOfALogitIsSeenEvenIfTheNumbersCompareEqual) {
  Answer answer = Right();
  answer.logits[2][1] = 0.0f;
  EXPECT_EQ(Difference(Right(), answer, 0), "the logits of token 2 differ");
}

TEST(DifferenceTest, AnotherAMissingAndATokenTooManyAreSeen) {
  Answer other = Right();
  other.tokens[1] = 9;
  EXPECT_EQ(Difference(Right(), other, 0), "token 1 differs");
  Answer shorter = Right();
  shorter.tokens.pop_back();
  shorter.logits.pop_back();
  EXPECT_EQ(Difference(Right(), shorter, 0), "token 2 is missing");
  EXPECT_EQ(Difference(Right(), Last(2), 2), "the logits of token 2 differ") << "a token twice";
  Answer longer = Right();
  longer.tokens.push_back(8);
  longer.logits.push_back({1, 1});
  EXPECT_EQ(Difference(Right(), longer, 0), "there are more tokens than asked for");
}

TEST(DifferenceTest, AnErrorAndATokenWithoutLogitsAreSeen) {
  Answer failed = Right();
  failed.result.status = absl::InternalError("no");
  EXPECT_EQ(Difference(Right(), failed, 0), "failed: INTERNAL: no");
  Answer blind = Right();
  blind.logits.pop_back();
  EXPECT_EQ(Difference(Right(), blind, 0), "3 tokens were chosen from 2 rows of logits");
}

}  // namespace
}  // namespace pagoda::exactness
