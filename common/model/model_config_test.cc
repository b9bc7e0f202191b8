#include "common/model/model_config.h"

#include "common/model/tensor_inventory.h"
#include "common/model/testing/gguf_writer.h"
#include "common/model/testing/tiny_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda::model {
namespace {

using testing::GgufWriter;
using ::testing::HasSubstr;
using testing::TinyModel;
using testing::TinyModelOptions;

// A model file that holds zeros, of 2 layers, hidden 128, 2 heads of 64, with one thing changed.
class Draft {
 public:
  Draft() {
    config_.num_layers = 2;
    config_.hidden = 128;
    config_.ffn = 64;
    config_.num_heads = config_.num_kv_heads = 2;
    config_.head_dim = 64;
    config_.vocabulary = 32;
    config_.tied_head = true;
    specs_ = ExpectedTensors(config_);
    uints_ = {{"llama.block_count", 2},
              {"llama.context_length", 100},
              {"llama.embedding_length", 128},
              {"llama.feed_forward_length", 64},
              {"llama.attention.head_count", 2}};
    floats_ = {{"llama.attention.layer_norm_rms_epsilon", 1e-5f}};
    strings_ = {{"general.architecture", "llama"}};
  }

  Draft& Set(const std::string& key, uint32_t value) {
    uints_[key] = value;
    return *this;
  }
  Draft& Set(const std::string& key, float value) {
    floats_[key] = value;
    return *this;
  }
  Draft& Set(const std::string& key, const char* value) {
    strings_[key] = value;
    return *this;
  }
  Draft& Remove(const std::string& key) {
    uints_.erase(key);
    return *this;
  }
  TensorSpec& Tensor(const std::string& name) {
    for (TensorSpec& spec : specs_) {
      if (spec.name == name) return spec;
    }
    specs_.push_back({name, TensorRole::kMatrix, 128, 128});
    return specs_.back();
  }
  Draft& RemoveTensor(const std::string& name) {
    std::erase_if(specs_, [&](const TensorSpec& spec) { return spec.name == name; });
    return *this;
  }
  Draft& Type(const std::string& name, TensorType type) {
    types_[name] = type;
    return *this;
  }

  StatusOr<ModelConfig> Read() {
    GgufWriter writer;
    for (const auto& [key, value] : strings_) writer.AddString(key, value);
    for (const auto& [key, value] : uints_) writer.AddUint(key, value);
    for (const auto& [key, value] : floats_) writer.AddFloat(key, value);
    for (const TensorSpec& spec : specs_) {
      auto found = types_.find(spec.name);
      const TensorType type = found == types_.end() ? TensorType::kF32 : found->second;
      const TensorTypeInfo* info = FindTensorType(type);
      const size_t bytes = spec.columns * spec.rows / info->block_elements * info->block_bytes;
      std::vector<uint64_t> dims = {spec.columns};
      if (spec.role == TensorRole::kMatrix) dims.push_back(spec.rows);
      writer.AddTensor(spec.name, dims, type, std::string(bytes, '\0'));
    }
    file_ = writer.Finish();
    PAGODA_ASSIGN_OR_RETURN(GgufFile gguf, GgufFile::Parse(file_));
    return ReadModelConfig(gguf);
  }

  void ExpectRefused(absl::StatusCode code, const std::string& words) {
    Status status = Read().status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }

 private:
  ModelConfig config_;
  std::vector<TensorSpec> specs_;
  std::map<std::string, uint32_t> uints_;
  std::map<std::string, float> floats_;
  std::map<std::string, std::string> strings_;
  std::map<std::string, TensorType> types_;
  std::string file_;
};

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kNotBuilt = absl::StatusCode::kUnimplemented;

TEST(ModelConfigTest, WhatTheFileLeavesOutHasTheFormatsDefaults) {
  ModelConfig config = Draft().Read().value();
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.rope_dim, 64);
  EXPECT_EQ(config.rope_base, 10000.0f);
  EXPECT_EQ(config.rope_order, RopeOrder::kAdjacentPairs);
  EXPECT_EQ(config.vocabulary, 32);
  EXPECT_EQ(config.context_length, 100);
  EXPECT_EQ(config.attention_scale, 0.125f);
  EXPECT_TRUE(config.tied_head);
}

TEST(ModelConfigTest, ReadsEveryTinyModel) {
  for (int32_t head_dim : {64, 128}) {
    for (bool tied : {true, false}) {
      for (TensorType type : {TensorType::kF32, TensorType::kQ4_1, TensorType::kQ8_0}) {
        TinyModelOptions options{.heads = 6,
                                 .kv_heads = 3,
                                 .head_dim = head_dim,
                                 .tied_head = tied,
                                 .weights = type,
                                 .embedding = type};
        std::string file = TinyModel(options);
        GgufFile gguf = GgufFile::Parse(file).value();
        ModelConfig config = ReadModelConfig(gguf).value();
        EXPECT_EQ(config.num_heads, 6);
        EXPECT_EQ(config.num_kv_heads, 3);
        EXPECT_EQ(config.head_dim, head_dim);
        EXPECT_EQ(config.tied_head, tied);
        EXPECT_EQ(config.vocabulary, options.vocabulary);
        EXPECT_EQ(gguf.Strings("tokenizer.ggml.tokens")->size(), 512u);
        EXPECT_EQ(gguf.Ints("tokenizer.ggml.token_type")->size(), 512u);
      }
    }
  }
}

TEST(ModelConfigTest, R7OtherArchitecturesAreRefusedByName) {
  Draft()
      .Set("general.architecture", "qwen2")
      .ExpectRefused(kNotBuilt, "general.architecture = \"qwen2\" is not supported");
}

TEST(ModelConfigTest, R7FeaturesThatChangeTheComputationAreRefusedByName) {
  Draft()
      .Set("llama.rope.scaling.type", "yarn")
      .ExpectRefused(kNotBuilt, "llama.rope.scaling.type = \"yarn\"");
  Draft().Set("llama.rope.scaling.factor", 4.0f).ExpectRefused(kNotBuilt, "rope.scaling.factor");
  Draft().Set("llama.rope.scale_linear", 2.0f).ExpectRefused(kNotBuilt, "rope.scale_linear");
  Draft().Set("llama.expert_count", 8u).ExpectRefused(kNotBuilt, "llama.expert_count = 8");
  Draft().Set("llama.attention.sliding_window", 4096u).ExpectRefused(kNotBuilt, "sliding_window");
  Draft().Set("llama.final_logit_softcapping", 30.0f).ExpectRefused(kNotBuilt, "softcapping");
  Draft().Set("llama.attention.scale", 1.0f).ExpectRefused(kNotBuilt, "attention.scale");
  Draft().Set("llama.rope.dimension_count", 32u).ExpectRefused(kNotBuilt, "dimension_count = 32");
  Draft().Set("llama.attention.value_length", 32u).ExpectRefused(kNotBuilt, "value_length = 32");
  Draft().Set("split.count", 3u).ExpectRefused(kNotBuilt, "split.count = 3");
}

TEST(ModelConfigTest, FeaturesThatAreSwitchedOffAreNot) {
  EXPECT_TRUE(Draft()
                  .Set("llama.rope.scaling.type", "none")
                  .Set("llama.rope.scaling.factor", 1.0f)
                  .Set("llama.expert_count", 0u)
                  .Set("llama.logit_scale", 1.0f)
                  .Set("split.count", 1u)
                  .Set("some.unknown.key", 3u)
                  .Read()
                  .ok());
}

TEST(ModelConfigTest, BadValuesNameTheKeyTheValueAndTheLimit) {
  Draft().Remove("llama.block_count").ExpectRefused(kNotFound, "\"llama.block_count\" is missing");
  Draft().Set("llama.block_count", 0u).ExpectRefused(kInvalid, "\"llama.block_count\" is 0");
  Draft().Set("llama.block_count", 5000u).ExpectRefused(kInvalid, "5000, the limit is 1024");
  Draft().Set("llama.embedding_length", 1u << 30).ExpectRefused(kInvalid, "limit is 1048576");
  Draft().Set("llama.attention.head_count", 0u).ExpectRefused(kInvalid, "head_count\" is 0");
  Draft().Set("llama.attention.head_count_kv", 3u).ExpectRefused(kInvalid, "does not divide");
  Draft().Set("llama.attention.head_count_kv", 0u).ExpectRefused(kInvalid, "does not divide");
  Draft().Set("llama.attention.head_count", 3u).ExpectRefused(kInvalid, "no multiple");
  Draft().Set("llama.attention.head_count", 4u).ExpectRefused(kNotBuilt, "head dimension = 32");
  Draft().Set("llama.rope.freq_base", 0.0f).ExpectRefused(kInvalid, "llama.rope.freq_base");
  Draft().Set("llama.attention.layer_norm_rms_epsilon", 0.0f).ExpectRefused(kInvalid, "epsilon");
}

TEST(ModelConfigTest, TensorsAreCheckedByName) {
  Draft().RemoveTensor("token_embd.weight").ExpectRefused(kNotFound, "token_embd.weight");
  Draft().RemoveTensor("blk.1.ffn_up.weight").ExpectRefused(kNotFound, "\"blk.1.ffn_up.weight\"");
  Draft draft;
  draft.Tensor("blk.0.attn_k.weight").rows = 64;
  draft.ExpectRefused(kInvalid, "\"blk.0.attn_k.weight\" has the shape [128, 64]");
  Draft bias;
  bias.Tensor("blk.0.attn_q.bias");
  bias.ExpectRefused(kNotBuilt, "\"blk.0.attn_q.bias\" is not part of the computation");
  Draft scaling;
  scaling.Tensor("rope_freqs.weight");
  scaling.ExpectRefused(kNotBuilt, "rope_freqs.weight");
  Draft()
      .Type("blk.0.attn_q.weight", TensorType::kF16)
      .ExpectRefused(kNotBuilt, "\"blk.0.attn_q.weight\" has the type F16");
  Draft()
      .Type("blk.0.attn_norm.weight", TensorType::kQ8_0)
      .ExpectRefused(kNotBuilt, "\"blk.0.attn_norm.weight\" has the type Q8_0");
}

TEST(ModelConfigTest, AHeadOfItsOwnIsNotTied) {
  Draft draft;
  draft.Tensor("output.weight").rows = 32;
  ModelConfig config = draft.Read().value();
  EXPECT_FALSE(config.tied_head);
  EXPECT_NE(CanonicalConfig(config), CanonicalConfig(Draft().Read().value()));
}

TEST(ModelConfigTest, TheCanonicalFormIsSortedAndHoldsTheBitsOfFloats) {
  EXPECT_EQ(CanonicalConfig(Draft().Read().value()),
            "architecture=llama\nattention_scale=3e000000\nffn=64\nhead_dim=64\nhidden=128\n"
            "num_heads=2\nnum_kv_heads=2\nnum_layers=2\nrms_eps=3727c5ac\nrope_base=461c4000\n"
            "rope_dim=64\nrope_order=adjacent_pairs\nrope_scaling=none\ntied_head=1\n"
            "vocabulary=32\n");
}

TEST(TinyModelTest, TheSameOptionsGiveTheSameFile) {
  EXPECT_EQ(TinyModel({}), TinyModel({}));
  EXPECT_NE(TinyModel({}), TinyModel({.seed = 2}));
}

}  // namespace
}  // namespace pagoda::model
