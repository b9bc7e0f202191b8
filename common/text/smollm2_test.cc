// SmolLM2's tokenizer and template against Hugging Face: testdata/smollm2.json, made by
// testdata/make_smollm2.py. Needs PAGODA_TEST_MODEL; the vectors also PAGODA_SHARED_DATA.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "common/model/gguf.h"
#include "common/text/detokenizer.h"
#include "common/text/gguf_text.h"
#include "common/text/testing/random_text.h"
#include "common/text/text_model.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace pagoda::text {
namespace {

using nlohmann::json;
using Ids = std::vector<uint32_t>;

class SmolLm2TextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("PAGODA_TEST_MODEL");
    if (path == nullptr) {
      GTEST_SKIP() << "no SmolLM2: PAGODA_TEST_MODEL does not name SmolLM2-135M-Instruct.Q4_1.gguf";
    }
    auto file = model::GgufFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    auto made = TextModel::Make(ReadTokenizerSpec(*file).value());
    ASSERT_TRUE(made.ok()) << made.status();
    model_ = *std::move(made);
  }

  const Tokenizer& tokenizer() const { return model_->tokenizer(); }

  static json Golden() {
    std::ifstream file(PAGODA_TEXT_TESTDATA "/smollm2.json");
    return json::parse(file);
  }

  std::unique_ptr<const TextModel> model_;
};

TEST_F(SmolLm2TextTest, IdsEqualHuggingFaceWithAndWithoutControlTokens) {
  json golden = Golden();
  ASSERT_GE(golden["texts"].size(), 80u);
  for (const auto& entry : golden["texts"]) {
    std::string text = entry["text"];
    SCOPED_TRACE(entry["text"].dump());
    EXPECT_EQ(tokenizer().Encode(text, Origin::kTemplate).value(), entry["parsed"].get<Ids>());
    EXPECT_EQ(tokenizer().Encode(text, Origin::kMessage).value(), entry["spelled"].get<Ids>());
    EXPECT_EQ(Decode(tokenizer(), entry["parsed"].get<Ids>()), entry["decoded"].get<std::string>());
  }
}

TEST_F(SmolLm2TextTest, ChatsEqualApplyChatTemplateAndMessagesStayText) {
  json golden = Golden();
  ASSERT_GE(golden["chats"].size(), 24u);
  for (const auto& chat : golden["chats"]) {
    SCOPED_TRACE(chat.dump());
    std::vector<ChatMessage> messages;
    for (const auto& message : chat["messages"]) {
      messages.push_back({message["role"], message["content"]});
    }
    auto ids = model_->EncodeChat(messages, chat["add_generation_prompt"]);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, chat["ids"].get<Ids>());
  }
}

TEST_F(SmolLm2TextTest, IdsEqualTheSharedVectors) {
  const char* shared = std::getenv("PAGODA_SHARED_DATA");
  if (shared == nullptr) GTEST_SKIP() << "no shared vectors: PAGODA_SHARED_DATA is not set";
  auto folder = std::filesystem::path(shared) / "tokenizers/vocab-vectors";
  std::ifstream inputs(folder / "smollm2.inp", std::ios::binary);
  std::ifstream outputs(folder / "smollm2.out");
  ASSERT_TRUE(inputs.good() && outputs.good()) << folder;
  std::stringstream all;
  all << inputs.rdbuf();
  std::string rest = all.str();
  const std::string separator = "\n__ggml_vocab_test__\n";
  int compared = 0;
  for (std::string line; std::getline(outputs, line); ++compared) {
    std::istringstream numbers(line);
    Ids ids{std::istream_iterator<uint32_t>(numbers), std::istream_iterator<uint32_t>()};
    size_t end = rest.find(separator);
    ASSERT_NE(end, std::string::npos);
    EXPECT_EQ(tokenizer().Encode(rest.substr(0, end), Origin::kTemplate).value(), ids)
        << rest.substr(0, end);
    rest = rest.substr(end + separator.size());
  }
  EXPECT_EQ(compared, 46);
}

TEST_F(SmolLm2TextTest, DecodingGivesTheTextBackUnlessTheVocabularyLacksItsBytes) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::string alphabet_lacks = "\x04\x06\x13\x14\x16\x1D";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (const std::string& character : testing::RandomCharacters(random, round % 64)) {
      auto lead = static_cast<unsigned char>(character[0]);
      if (lead >= 0xF1 || alphabet_lacks.find(character) != std::string::npos) continue;
      text += character;
    }
    for (Origin origin : {Origin::kTemplate, Origin::kMessage}) {
      auto ids = tokenizer().Encode(text, origin);
      ASSERT_TRUE(ids.ok()) << ids.status();
      ASSERT_EQ(DecodeBytes(tokenizer(), *ids), text);
    }
  }
}

TEST_F(SmolLm2TextTest, SpecialIdsAndTheStopSetComeFromTheFile) {
  EXPECT_EQ(model_->stop_ids(), (Ids{2}));
  EXPECT_EQ(tokenizer().vocabulary_size(), 49152u);
  EXPECT_EQ(tokenizer().longest_token_bytes(), 81u);
  EXPECT_EQ(tokenizer().bos(), 1u);
  EXPECT_FALSE(tokenizer().add_bos());
  EXPECT_TRUE(tokenizer().IsControl(0));
  EXPECT_FALSE(tokenizer().IsControl(17));
  EXPECT_EQ(tokenizer().TokenBytes(2), "<|im_end|>");
}

TEST_F(SmolLm2TextTest, TheSerializedFormGivesTheSameModel) {
  auto copy = TextModel::FromSerialized(model_->serialized());
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ((*copy)->digest(), model_->digest());
  EXPECT_EQ((*copy)->EncodePrompt("Hello 123").value(), model_->EncodePrompt("Hello 123").value());
}

}  // namespace
}  // namespace pagoda::text
