#include "common/text/detokenizer.h"

#include "common/base/utf8.h"
#include "common/text/testing/tiny_spec.h"
#include "gtest/gtest.h"

namespace pagoda::text {
namespace {

using Ids = std::vector<uint32_t>;

class DetokenizerTest : public ::testing::Test {
 protected:
  // The ids of the single bytes' tokens.
  Ids ByteIds(std::string_view bytes) const {
    Ids ids;
    for (char byte : bytes) {
      for (uint32_t id = 0; id < tokenizer_->vocabulary_size(); ++id) {
        if (tokenizer_->TokenBytes(id) == std::string_view(&byte, 1)) ids.push_back(id);
      }
    }
    EXPECT_EQ(ids.size(), bytes.size());
    return ids;
  }

  std::unique_ptr<const Tokenizer> tokenizer_ = MakeTokenizer(testing::TinySpec()).value();
};

TEST_F(DetokenizerTest, IllFormedBytesAreReplacedAsInPython) {
  auto cases = testing::ReplacedCases();
  ASSERT_GE(cases.size(), 200u);
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(Decode(*tokenizer_, ByteIds(bytes)), text);
  }
}

TEST_F(DetokenizerTest, EverySplitGivesTheSameTextAndNeverHalfACharacter) {
  for (const auto& [bytes, text] : testing::ReplacedCases()) {
    Ids ids = ByteIds(bytes);
    for (size_t cut = 0; cut <= ids.size(); ++cut) {
      Detokenizer detokenizer(tokenizer_.get());
      std::span<const uint32_t> all(ids);
      std::string first = detokenizer.Feed(all.subspan(0, cut));
      std::string second = detokenizer.Feed(all.subspan(cut));
      EXPECT_EQ(Utf8ValidPrefix(first), first.size());
      EXPECT_EQ(first + second + detokenizer.Finish(), text);
    }
    Detokenizer one_by_one(tokenizer_.get());
    std::string joined;
    for (uint32_t id : ids) joined += one_by_one.Feed(id);
    EXPECT_EQ(joined + one_by_one.Finish(), text);
  }
}

TEST_F(DetokenizerTest, ACharacterComesWithItsLastByteAndNotBefore) {
  Detokenizer detokenizer(tokenizer_.get());
  Ids ids = ByteIds("\xF0\x9F\x91\x8Dx");
  EXPECT_EQ(detokenizer.Feed(ids[0]), "");
  EXPECT_EQ(detokenizer.Feed(ids[1]), "");
  EXPECT_EQ(detokenizer.Feed(ids[2]), "");
  EXPECT_EQ(detokenizer.Feed(ids[3]), "\xF0\x9F\x91\x8D");
  EXPECT_EQ(detokenizer.Feed(ids[4]), "x");
  EXPECT_EQ(detokenizer.Finish(), "");
}

TEST_F(DetokenizerTest, BytesThatCannotBecomeACharacterAreNotHeldBack) {
  Detokenizer detokenizer(tokenizer_.get());
  EXPECT_EQ(detokenizer.Feed(ByteIds("\xE2\x82")), "");
  EXPECT_EQ(detokenizer.Feed(ByteIds("a")), "\uFFFDa");
  EXPECT_EQ(detokenizer.Feed(ByteIds("\xFF")), "\uFFFD");
}

TEST_F(DetokenizerTest, ControlTokensAreSkippedOrShown) {
  TokenizerSpec spec = testing::TinySpec();
  Ids ids = tokenizer_->Encode("<@start@>hi<@end@>", Origin::kTemplate).value();
  EXPECT_EQ(Decode(*tokenizer_, ids), "hi");
  EXPECT_EQ(Decode(*tokenizer_, ids, ControlText::kShow), "<@start@>hi<@end@>");
  // A skipped token leaves the character around it whole.
  Ids split = ByteIds("\xC3\xA9");
  split.insert(split.begin() + 1, *spec.eos);
  EXPECT_EQ(Decode(*tokenizer_, split), "\u00E9");
}

TEST_F(DetokenizerTest, FinishLeavesItReadyForAnotherStream) {
  Detokenizer detokenizer(tokenizer_.get());
  EXPECT_EQ(detokenizer.Feed(ByteIds("\xE2")), "");
  EXPECT_EQ(detokenizer.Finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.Feed(ByteIds("ok")), "ok");
  EXPECT_EQ(detokenizer.Feed(1u << 30), "");
}

}  // namespace
}  // namespace pagoda::text
