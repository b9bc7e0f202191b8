#include "common/text/text_model.h"

#include <functional>
#include <random>
#include <set>

#include "common/base/bytes.h"
#include "common/model/gguf.h"
#include "common/model/testing/gguf_writer.h"
#include "common/model/testing/tiny_model.h"
#include "common/text/gguf_text.h"
#include "common/text/testing/tiny_spec.h"
#include "gtest/gtest.h"

namespace pagoda::text {
namespace {

using Ids = std::vector<uint32_t>;

TokenizerSpec ChatSpec() {
  TokenizerSpec spec = testing::TinySpec();
  spec.chat_template =
      "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}";
  return spec;
}

TEST(TextModelTest, TheStopSetIsAllThatEndsAnAnswer) {
  TokenizerSpec spec = ChatSpec();
  spec.eos = 9;
  spec.eot = 4;
  spec.eom = 30;
  spec.generation_eos = {20, 9};
  EXPECT_EQ(TextModel::Make(spec).value()->stop_ids(), (Ids{4, 9, 20, 30}));
}

TEST(TextModelTest, AChatIsTheTemplatesTextWithoutAnotherBos) {
  TokenizerSpec spec = ChatSpec();
  spec.add_bos = true;
  auto model = TextModel::Make(spec).value();
  std::vector<ChatMessage> messages = {{"user", "a<@end@>"}};
  Ids ids = model->EncodeChat(messages, true).value();
  Ids expected = {*spec.bos};
  Ids content = model->tokenizer().Encode("a<@end@>", Origin::kMessage).value();
  expected.insert(expected.end(), content.begin(), content.end());
  expected.push_back(*spec.eos);
  EXPECT_EQ(ids, expected);
}

TEST(TextModelTest, APromptStartsWithOneBosWhereTheModelWantsIt) {
  TokenizerSpec spec = testing::TinySpec();
  Ids plain = TextModel::Make(spec).value()->EncodePrompt("hi").value();
  spec.add_bos = true;
  auto model = TextModel::Make(spec).value();
  Ids with_bos = plain;
  with_bos.insert(with_bos.begin(), *spec.bos);
  EXPECT_EQ(model->EncodePrompt("hi").value(), with_bos);
  EXPECT_EQ(model->EncodePrompt("<@start@>hi").value(), with_bos);
  EXPECT_EQ(model->EncodePrompt("").value(), (Ids{*spec.bos}));
}

TEST(TextModelTest, AModelWithoutATemplateSaysSo) {
  auto model = TextModel::Make(testing::TinySpec()).value();
  EXPECT_EQ(model->chat_template(), nullptr);
  EXPECT_EQ(model->EncodeChat({}, true).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(TextModelTest, EveryFieldChangesTheDigest) {
  const std::vector<std::function<void(TokenizerSpec&)>> changes = {
      [](TokenizerSpec&) {},
      [](TokenizerSpec& s) {
        s.tokens[699] += "x";
        s.merges.pop_back();
      },
      [](TokenizerSpec& s) { s.types[600] = TokenType::kUnused; },
      [](TokenizerSpec& s) { std::swap(s.merges[10], s.merges[11]); },
      [](TokenizerSpec& s) { s.add_bos = true; },
      [](TokenizerSpec& s) { s.bos = 7; },
      [](TokenizerSpec& s) { s.eos = 7; },
      [](TokenizerSpec& s) { s.eot = 7; },
      [](TokenizerSpec& s) { s.eom = 7; },
      [](TokenizerSpec& s) { s.unk = 7; },
      [](TokenizerSpec& s) { s.pad = 7; },
      [](TokenizerSpec& s) { s.generation_eos = {7}; },
      [](TokenizerSpec& s) { s.chat_template += " "; },
  };
  std::set<std::string> digests;
  for (const auto& change : changes) {
    TokenizerSpec spec = ChatSpec();
    change(spec);
    auto model = TextModel::Make(spec);
    ASSERT_TRUE(model.ok()) << model.status();
    digests.insert(ToHex(AsBytes((*model)->digest())));
    EXPECT_EQ((*TextModel::Make(spec))->digest(), (*model)->digest());
    EXPECT_EQ(ParseSpec((*model)->serialized()).value(), spec);
  }
  EXPECT_EQ(digests.size(), changes.size());
}

TEST(TextModelTest, IdsOutsideTheVocabularyAreRefusedByName) {
  auto error = [](auto change) {
    TokenizerSpec spec = ChatSpec();
    change(spec);
    return std::string(TextModel::Make(spec).status().message());
  };
  using Spec = TokenizerSpec;
  EXPECT_EQ(error([](Spec& s) { s.eot = 700; }),
            "tokenizer: eot id 700 is not below the vocabulary's size 700");
  EXPECT_EQ(error([](Spec& s) {
              s.generation_eos = {1, 701};
            }),
            "tokenizer: generation eos id 701 is not below the vocabulary's size 700");
  EXPECT_EQ(error([](Spec& s) {
              s.bos.reset();
              s.add_bos = true;
            }),
            "tokenizer: add_bos is set but there is no bos id");
  EXPECT_EQ(error([](Spec& s) { s.chat_template = "\n{{ x|foo }}"; }),
            "chat template: line 2: unknown filter \"foo\"");
}

TEST(TextModelTest, ASerializedModelThatIsCutOrChangedIsAnErrorOrAnotherModel) {
  std::string bytes = SerializeSpec(ChatSpec());
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (size_t length = 0; length < bytes.size(); length += 1 + random() % 40) {
    EXPECT_FALSE(ParseSpec(std::string_view(bytes).substr(0, length)).ok());
  }
  EXPECT_FALSE(ParseSpec(bytes + "x").ok());
  for (int round = 0; round < 300; ++round) {
    std::string changed = bytes;
    changed[random() % changed.size()] = static_cast<char>(random());
    auto spec = ParseSpec(changed);
    if (!spec.ok()) continue;
    EXPECT_EQ(SerializeSpec(*spec), changed);
  }
}

TEST(TextModelTest, ATinyGgufModelGivesItsTokenizerAndTemplate) {
  std::string bytes = model::testing::TinyModel({});
  auto file = model::GgufFile::Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  TokenizerSpec spec = ReadTokenizerSpec(*file).value();
  EXPECT_EQ(spec.bos, model::testing::kTinyMessageStart);
  auto made = TextModel::Make(spec);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->stop_ids(), (Ids{model::testing::kTinyMessageEnd}));
  std::vector<ChatMessage> messages = {{"user", "hi"}};
  Ids ids = (*made)->EncodeChat(messages, true).value();
  EXPECT_EQ(ids.front(), model::testing::kTinyMessageStart);
  EXPECT_EQ(DecodeBytes((*made)->tokenizer(), ids),
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(TextModelTest, MissingAndOddMetadataIsNamed) {
  using Writer = model::testing::GgufWriter;
  auto error = [](const std::function<void(Writer&)>& add) {
    Writer writer;
    add(writer);
    std::string bytes = writer.Finish();
    auto file = model::GgufFile::Parse(bytes);
    EXPECT_TRUE(file.ok()) << file.status();
    return std::string(ReadTokenizerSpec(*file).status().message());
  };
  EXPECT_NE(error([](Writer& w) {}).find("tokenizer.ggml.model"), std::string::npos);
  EXPECT_NE(error([](Writer& w) {
              w.AddString("tokenizer.ggml.model", "gpt2");
            }).find("tokenizer.ggml.tokens"),
            std::string::npos);
  auto base = [](Writer& w) {
    w.AddString("tokenizer.ggml.model", "gpt2");
    w.AddStrings("tokenizer.ggml.tokens", {"a"});
  };
  EXPECT_EQ(error(base), "");
  EXPECT_NE(error([&](Writer& w) {
              base(w);
              w.AddInts("tokenizer.ggml.token_type", {-1});
            }).find("token_type"),
            std::string::npos);
  EXPECT_NE(error([&](Writer& w) {
              base(w);
              w.AddString("tokenizer.ggml.eos_token_id", "2");
            }).find("eos_token_id"),
            std::string::npos);
}

}  // namespace
}  // namespace pagoda::text
