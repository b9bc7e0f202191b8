#include "common/text/added_tokens.h"

#include <string>

#include "gtest/gtest.h"

namespace pagoda::text {
namespace {

constexpr bool kControl = true;
constexpr bool kUser = false;

AddedTokens Sample() {
  AddedTokens tokens;
  EXPECT_TRUE(tokens.Add("<|", 1, kControl).ok());
  EXPECT_TRUE(tokens.Add("<|end|>", 2, kControl).ok());
  EXPECT_TRUE(tokens.Add("<|e", 3, kUser).ok());
  return tokens;
}

TEST(AddedTokensTest, TheLongestTokenAtAPlaceWins) {
  AddedTokens tokens = Sample();
  std::string text = "a<|end|>";
  EXPECT_FALSE(tokens.Find(text, 0, text.size()).has_value());
  EXPECT_EQ(tokens.Find(text, 1, text.size())->id, 2u);
  EXPECT_EQ(tokens.Find(text, 1, text.size())->length, 7u);
  EXPECT_EQ(tokens.Find("<|en", 0, 4)->id, 3u);
  EXPECT_EQ(tokens.Find("<|x", 0, 3)->id, 1u);
}

TEST(AddedTokensTest, AControlTokenThatDoesNotEndInTimeGivesWayToAShorterOne) {
  AddedTokens tokens = Sample();
  std::string text = "<|end|>";
  EXPECT_EQ(tokens.Find(text, 0, 6)->id, 3u);
  EXPECT_EQ(tokens.Find(text, 0, 0)->id, 3u);  // a user-defined one counts everywhere
  EXPECT_FALSE(tokens.Find("<|x", 0, 1).has_value());
}

TEST(AddedTokensTest, EmptyLongAndRepeatedTokensAreRefused) {
  AddedTokens tokens = Sample();
  EXPECT_FALSE(tokens.Add("", 9, kUser).ok());
  EXPECT_FALSE(tokens.Add(std::string(kMaxAddedTokenBytes + 1, 'x'), 9, kUser).ok());
  EXPECT_TRUE(tokens.Add(std::string(kMaxAddedTokenBytes, 'x'), 9, kUser).ok());
  EXPECT_EQ(tokens.Add("<|", 9, kUser).message(), "added tokens 1 and 9 are the same text");
}

}  // namespace
}  // namespace pagoda::text
