#include "common/text/pre_tokenizer.h"

#include <random>
#include <string>
#include <vector>

#include "common/text/testing/random_text.h"
#include "gtest/gtest.h"

namespace pagoda::text {
namespace {

using Pieces = std::vector<std::string>;

Pieces SplitSmolLm(std::string_view text) {
  Pieces pieces;
  Status status = PreTokenizer::Make("smollm").value().Split(
      text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  EXPECT_TRUE(status.ok()) << status;
  return pieces;
}

TEST(PreTokenizerTest, WordsKeepTheSpaceBeforeThem) {
  EXPECT_EQ(SplitSmolLm("Hello, big world"), (Pieces{"Hello", ",", " big", " world"}));
  EXPECT_EQ(SplitSmolLm("a  b\n\n c"), (Pieces{"a", " ", " b", "\n\n", " c"}));
  EXPECT_EQ(SplitSmolLm("end  "), (Pieces{"end", "  "}));
}

TEST(PreTokenizerTest, DigitsStandAloneAndTheSpaceBeforeThemToo) {
  EXPECT_EQ(SplitSmolLm("x12 34"), (Pieces{"x", "1", "2", " ", "3", "4"}));
  EXPECT_EQ(SplitSmolLm("\u0663"), (Pieces{"\u0663"}));
  EXPECT_EQ(SplitSmolLm("a  1"), (Pieces{"a", "  ", "1"}));
  EXPECT_EQ(SplitSmolLm(" \u00BD\u00B2"), (Pieces{" \u00BD\u00B2"}));
}

TEST(PreTokenizerTest, EnglishContractionsAreCutOffInLowerCaseOnly) {
  EXPECT_EQ(SplitSmolLm("we'll I'M"), (Pieces{"we", "'ll", " I", "'", "M"}));
}

TEST(PreTokenizerTest, WhiteSpaceIsWhatUnicodeSaysItIs) {
  EXPECT_EQ(SplitSmolLm("a\u0085b"), (Pieces{"a", "\u0085", "b"}));
  EXPECT_EQ(SplitSmolLm("!\u180E!"), (Pieces{"!\u180E!"}));  // no longer a space since Unicode 6.3
  EXPECT_EQ(SplitSmolLm("!\u001C!"), (Pieces{"!\u001C!"}));  // a space to Python, not to Unicode
}

TEST(PreTokenizerTest, PiecesJoinedAreTheText) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::string text = testing::RandomText(random, round);
    std::string joined;
    for (const std::string& piece : SplitSmolLm(text)) {
      EXPECT_FALSE(piece.empty());
      joined += piece;
    }
    ASSERT_EQ(joined, text);
  }
}

TEST(PreTokenizerTest, AMebibyteOfSpacesOrLettersIsSplit) {
  for (char letter : {' ', 'x', '.', '\n'}) {
    std::string text(1 << 20, letter);
    EXPECT_EQ(SplitSmolLm(text), (Pieces{text}));
    EXPECT_GE(SplitSmolLm(text + "y").size(), 1u);
  }
}

TEST(PreTokenizerTest, AnotherPreTokenizerIsRefusedByName) {
  Status status = PreTokenizer::Make("llama-bpe").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "pre-tokenizer \"llama-bpe\" is not built in (smollm is)");
}

}  // namespace
}  // namespace pagoda::text
