// Right values: Hugging Face's tokenizers on the vocabulary of testdata/tiny.json.
#include "common/text/byte_bpe.h"

#include <algorithm>
#include <random>

#include "common/text/detokenizer.h"
#include "common/text/testing/random_text.h"
#include "common/text/testing/tiny_spec.h"
#include "common/text/tokenizer.h"
#include "gtest/gtest.h"

namespace pagoda::text {
namespace {

using Ids = std::vector<uint32_t>;

std::unique_ptr<const Tokenizer> Tiny() { return MakeTokenizer(testing::TinySpec()).value(); }

uint32_t IdOf(std::string_view token) {
  TokenizerSpec spec = testing::TinySpec();
  auto found = std::find(spec.tokens.begin(), spec.tokens.end(), token);
  EXPECT_NE(found, spec.tokens.end());
  return static_cast<uint32_t>(found - spec.tokens.begin());
}

TEST(ByteBpeTest, IdsEqualHuggingFaceWithAndWithoutControlTokens) {
  auto tokenizer = Tiny();
  auto cases = testing::TinyCases();
  ASSERT_GE(cases.size(), 80u);
  for (const auto& [text, parsed, spelled] : cases) {
    SCOPED_TRACE(text);
    EXPECT_EQ(tokenizer->Encode(text, Origin::kTemplate).value(), parsed);
    EXPECT_EQ(tokenizer->Encode(text, Origin::kMessage).value(), spelled);
  }
}

TEST(ByteBpeTest, WhereSpansAreCutDoesNotShowInTheIds) {
  auto tokenizer = Tiny();
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const auto& [text, parsed, spelled] : testing::TinyCases()) {
    SCOPED_TRACE(text);
    for (Origin origin : {Origin::kTemplate, Origin::kMessage}) {
      std::vector<TextSpan> spans;
      for (size_t at = 0; at < text.size();) {
        size_t length = std::min<size_t>(random() % 5, text.size() - at);
        spans.push_back({text.substr(at, length), origin});
        at += length;
      }
      EXPECT_EQ(tokenizer->Encode(spans).value(), origin == Origin::kTemplate ? parsed : spelled);
    }
  }
}

TEST(ByteBpeTest, ControlTokensAreParsedInTemplateTextOnly) {
  auto tokenizer = Tiny();
  std::vector<TextSpan> spans = {{"<@start@>a", Origin::kTemplate},
                                 {"<@end@>", Origin::kMessage},
                                 {"<@end@>", Origin::kTemplate}};
  Ids ids = tokenizer->Encode(spans).value();
  Ids spelled = tokenizer->Encode("a<@end@>", Origin::kMessage).value();
  Ids expected = {IdOf("<@start@>")};
  expected.insert(expected.end(), spelled.begin(), spelled.end());
  expected.push_back(IdOf("<@end@>"));
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(std::count(spelled.begin(), spelled.end(), IdOf("<@end@>")), 0);
}

TEST(ByteBpeTest, AControlTokenAcrossABorderIsText) {
  auto tokenizer = Tiny();
  Ids spelled = tokenizer->Encode("[ctl]", Origin::kMessage).value();
  EXPECT_EQ(spelled.size(), 5u);
  for (size_t cut = 1; cut < 5; ++cut) {
    std::string text = "[ctl]";
    std::vector<TextSpan> forward = {{text.substr(0, cut), Origin::kTemplate},
                                     {text.substr(cut), Origin::kMessage}};
    std::vector<TextSpan> backward = {{text.substr(0, cut), Origin::kMessage},
                                      {text.substr(cut), Origin::kTemplate}};
    EXPECT_EQ(tokenizer->Encode(forward).value(), spelled);
    EXPECT_EQ(tokenizer->Encode(backward).value(), spelled);
  }
}

TEST(ByteBpeTest, MessagesNeverGiveControlTokens) {
  auto tokenizer = Tiny();
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string parts[] = {"<@end@>", "<@", "end", "@>", "[ctl]", "<@start@>", "<", "[", "\n"};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += parts[random() % std::size(parts)];
    Ids ids = tokenizer->Encode(text, Origin::kMessage).value();
    ASSERT_FALSE(ids.empty());
    for (uint32_t id : ids) {
      ASSERT_FALSE(tokenizer->IsControl(id)) << text;
    }
  }
}

TEST(ByteBpeTest, DecodingGivesTheTextBack) {
  auto tokenizer = Tiny();
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    std::string text = testing::RandomText(random, round % 80);
    for (Origin origin : {Origin::kTemplate, Origin::kMessage}) {
      Ids ids = tokenizer->Encode(text, origin).value();
      ASSERT_EQ(DecodeBytes(*tokenizer, ids), text);
      ASSERT_EQ(Decode(*tokenizer, ids, ControlText::kShow), text);
      ASSERT_TRUE(CheckTokenIds(*tokenizer, ids).ok());
    }
  }
}

TEST(ByteBpeTest, TextThatIsNotUtf8IsRefusedWithTheBytesPlace) {
  auto tokenizer = Tiny();
  Status status = tokenizer->Encode("caf\xC3", Origin::kTemplate).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "the text is not UTF-8 at byte 3");
}

TEST(ByteBpeTest, TextPastTheLimitIsRefused) {
  auto tokenizer = Tiny();
  std::vector<TextSpan> spans = {{std::string(kMaxEncodeBytes, 'x'), Origin::kMessage},
                                 {"x", Origin::kMessage}};
  EXPECT_EQ(tokenizer->Encode(spans).status().message(), "the text has more than 16777216 bytes");
}

TEST(ByteBpeTest, IdsOutsideTheVocabularyGiveNoTextAndAreNamed) {
  auto tokenizer = Tiny();
  uint32_t size = tokenizer->vocabulary_size();
  EXPECT_EQ(tokenizer->TokenBytes(size), "");
  EXPECT_FALSE(tokenizer->IsControl(size));
  EXPECT_EQ(CheckTokenIds(*tokenizer, Ids{1, size}).message(),
            "token id 700 at place 1 is not below the vocabulary's size 700");
}

TEST(ByteBpeTest, ABrokenVocabularyIsRefusedByWhatIsWrong) {
  auto error = [](auto change) {
    TokenizerSpec spec = testing::TinySpec();
    change(spec);
    return std::string(MakeTokenizer(spec).status().message());
  };
  using Spec = TokenizerSpec;
  EXPECT_EQ(error([](Spec& s) { s.model = "llama"; }),
            "tokenizer model \"llama\" is not built in (gpt2 is)");
  EXPECT_EQ(error([](Spec& s) { s.pre_tokenizer = "qwen2"; }),
            "pre-tokenizer \"qwen2\" is not built in (smollm is)");
  EXPECT_EQ(error([](Spec& s) { s.types.pop_back(); }),
            "tokenizer: 700 tokens but 699 token types");
  EXPECT_EQ(error([](Spec& s) { s.tokens[600] = s.tokens[500]; }),
            "tokenizer: tokens 500 and 600 are the same text");
  EXPECT_EQ(error([](Spec& s) { s.types[600] = static_cast<TokenType>(7); }),
            "tokenizer: token 600 has the type 7; 1 to 6 are known");
  EXPECT_EQ(error([](Spec& s) { s.merges[0] = "abc"; }),
            "tokenizer: merge 0 \"abc\" is not two tokens");
  EXPECT_EQ(error([](Spec& s) { s.merges[3] = "q nosuch"; }),
            "tokenizer: merge 3 \"q nosuch\" uses or makes what is not a plain token");
  EXPECT_EQ(error([](Spec& s) { s.merges[2] = s.merges[1]; }).substr(0, 18), "tokenizer: merge 2");
  EXPECT_NE(error([](Spec& s) { s.tokens.clear(); }), "");
}

TEST(ByteBpeTest, AMergeThatWouldSpellAControlTokenIsRefused) {
  TokenizerSpec spec = testing::TinySpec();
  spec.merges.push_back("< @");
  EXPECT_EQ(std::string(MakeTokenizer(spec).status().message()),
            "tokenizer: merge 434 \"< @\" uses or makes what is not a plain token");
}

}  // namespace
}  // namespace pagoda::text
