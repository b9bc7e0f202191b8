// Facts of the model that the quick start serves. Needs PAGODA_TEST_MODEL.
#include <cstdlib>
#include <map>

#include "common/base/bytes.h"
#include "common/model/gguf.h"
#include "common/model/model_config.h"
#include "common/model/weights_digest.h"
#include "gtest/gtest.h"

namespace pagoda::model {
namespace {

class SmolLm2Test : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("PAGODA_TEST_MODEL");
    if (path == nullptr) {
      GTEST_SKIP() << "no SmolLM2: PAGODA_TEST_MODEL does not name SmolLM2-135M-Instruct.Q4_1.gguf";
    }
    gguf_.emplace(GgufFile::Open(path).value());
  }

  std::optional<GgufFile> gguf_;
};

TEST_F(SmolLm2Test, HasTheConfigurationThatWasPublished) {
  ModelConfig config = ReadModelConfig(*gguf_).value();
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.num_layers, 30);
  EXPECT_EQ(config.hidden, 576);
  EXPECT_EQ(config.ffn, 1536);
  EXPECT_EQ(config.num_heads, 9);
  EXPECT_EQ(config.num_kv_heads, 3);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.vocabulary, 49152);
  EXPECT_EQ(config.context_length, 8192);
  EXPECT_EQ(config.rope_base, 100000.0f);
  EXPECT_EQ(config.rms_eps, 1e-5f);
  EXPECT_TRUE(config.tied_head);
}

TEST_F(SmolLm2Test, HasTheTensorsThatTheKernelsExpect) {
  std::map<TensorType, int> count;
  for (const GgufTensor& tensor : gguf_->tensors()) ++count[tensor.type];
  EXPECT_EQ(count, (std::map<TensorType, int>{
                       {TensorType::kF32, 61}, {TensorType::kQ4_1, 210}, {TensorType::kQ8_0, 1}}));
  EXPECT_EQ(gguf_->FindTensor("token_embd.weight")->type, TensorType::kQ8_0);
}

TEST_F(SmolLm2Test, CarriesItsTokenizer) {
  EXPECT_EQ(gguf_->String("tokenizer.ggml.pre").value(), "smollm");
  EXPECT_EQ(gguf_->Strings("tokenizer.ggml.tokens")->size(), 49152u);
  EXPECT_EQ(gguf_->Strings("tokenizer.ggml.merges")->size(), 48900u);
  EXPECT_EQ(gguf_->Uint("tokenizer.ggml.eos_token_id").value(), 2u);
}

// Computed with Python's hashlib from the definition in weights_digest.h.
TEST_F(SmolLm2Test, HasTheIdentityThatAnIndependentProgramComputes) {
  const Digest256 content = ContentDigest(gguf_->bytes(), 2);
  EXPECT_EQ(ToHex(AsBytes(content)),
            "0e58630fcf2cd0c988655fb483297aec3b9ce30368618011e4505b8f5d65ed85");
  const Digest256 weights =
      WeightsDigest({{"", content}}, CanonicalConfig(ReadModelConfig(*gguf_).value()));
  EXPECT_EQ(ToHex(AsBytes(weights)),
            "7bd76ff9f07377ac0537a87e7faf34448bf9688945de9ca018af17bd1fbd76be");
}

}  // namespace
}  // namespace pagoda::model
