#include "common/model/model_config.h"

#include <bit>
#include <cmath>
#include <cstdio>

#include "common/model/tensor_inventory.h"

namespace pagoda::model {
namespace {

// Far above any model that a CPU or one GPU serves; they keep every product of two inside 64 bits
// and every width inside int32.
constexpr uint64_t kMaxLayers = 1024;
constexpr uint64_t kMaxWidth = 1 << 20;
constexpr uint64_t kMaxHeads = 4096;
constexpr uint64_t kMaxHeadDim = 1024;
constexpr uint64_t kMaxContext = 1 << 26;

// Keys (after "llama.") that change the computation in a way that is not built. A value that
// switches the feature off is accepted.
constexpr std::string_view kRefusedCounts[] = {
    "expert_count", "expert_used_count", "attention.sliding_window", "leading_dense_block_count"};
struct RefusedFloat {
  std::string_view name;
  bool one_is_off;  // a factor; 0 is off everywhere
};
constexpr RefusedFloat kRefusedFloats[] = {{"attention.max_alibi_bias", false},
                                           {"attention.clamp_kqv", false},
                                           {"attn_logit_softcapping", false},
                                           {"final_logit_softcapping", false},
                                           {"attention.scale", false},
                                           {"logit_scale", true},
                                           {"residual_scale", true},
                                           {"embedding_scale", true},
                                           {"rope.scale_linear", true},
                                           {"rope.scaling.factor", true}};

// The integer `key`, or `fallback` when the file has none.
StatusOr<int32_t> IntOr(const GgufFile& gguf, const std::string& key, uint64_t max,
                        int32_t fallback) {
  if (!gguf.Has(key)) return fallback;
  PAGODA_ASSIGN_OR_RETURN(uint64_t value, gguf.Uint(key, max));
  return static_cast<int32_t>(value);
}

StatusOr<int32_t> PositiveInt(const GgufFile& gguf, const std::string& key, uint64_t max) {
  PAGODA_ASSIGN_OR_RETURN(uint64_t value, gguf.Uint(key, max));
  if (value == 0) return absl::InvalidArgumentError("GGUF: metadata " + QuoteName(key) + " is 0");
  return static_cast<int32_t>(value);
}

Status NotBuilt(const std::string& key, const std::string& value) {
  return absl::UnimplementedError("model: " + key + " = " + value + " is not supported");
}

Status RefuseUnbuiltFeatures(const GgufFile& gguf) {
  for (std::string_view name : kRefusedCounts) {
    const std::string key = "llama." + std::string(name);
    if (!gguf.Has(key)) continue;
    PAGODA_ASSIGN_OR_RETURN(uint64_t count, gguf.Uint(key));
    if (count != 0) return NotBuilt(key, std::to_string(count));
  }
  for (const RefusedFloat& refused : kRefusedFloats) {
    const std::string key = "llama." + std::string(refused.name);
    if (!gguf.Has(key)) continue;
    PAGODA_ASSIGN_OR_RETURN(float value, gguf.Float(key));
    const bool off = value == 0.0f || (refused.one_is_off && value == 1.0f);
    if (!off) return NotBuilt(key, std::to_string(value));
  }
  if (gguf.Has("llama.attention.causal")) {
    PAGODA_ASSIGN_OR_RETURN(bool causal, gguf.Bool("llama.attention.causal"));
    if (!causal) return NotBuilt("llama.attention.causal", "false");
  }
  if (gguf.Has("llama.rope.scaling.type")) {
    PAGODA_ASSIGN_OR_RETURN(std::string_view scaling, gguf.String("llama.rope.scaling.type"));
    if (scaling != "none") return NotBuilt("llama.rope.scaling.type", QuoteName(scaling));
  }
  if (gguf.Has("split.count")) {
    PAGODA_ASSIGN_OR_RETURN(uint64_t count, gguf.Uint("split.count"));
    if (count > 1) return NotBuilt("split.count", std::to_string(count));
  }
  return absl::OkStatus();
}

Status ReadHeads(const GgufFile& gguf, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(config.num_heads,
                          PositiveInt(gguf, "llama.attention.head_count", kMaxHeads));
  PAGODA_ASSIGN_OR_RETURN(config.num_kv_heads, IntOr(gguf, "llama.attention.head_count_kv",
                                                     kMaxHeads, config.num_heads));
  if (config.num_kv_heads == 0 || config.num_heads % config.num_kv_heads != 0) {
    return absl::InvalidArgumentError(
        "model: llama.attention.head_count_kv = " + std::to_string(config.num_kv_heads) +
        " does not divide llama.attention.head_count = " + std::to_string(config.num_heads));
  }
  if (!gguf.Has("llama.attention.key_length") && config.hidden % config.num_heads != 0) {
    return absl::InvalidArgumentError(
        "model: llama.embedding_length = " + std::to_string(config.hidden) +
        " is no multiple of llama.attention.head_count = " + std::to_string(config.num_heads));
  }
  PAGODA_ASSIGN_OR_RETURN(config.head_dim, IntOr(gguf, "llama.attention.key_length", kMaxHeadDim,
                                                 config.hidden / config.num_heads));
  PAGODA_ASSIGN_OR_RETURN(
      int32_t value_dim, IntOr(gguf, "llama.attention.value_length", kMaxHeadDim, config.head_dim));
  if (value_dim != config.head_dim) {
    return NotBuilt(
        "llama.attention.value_length",
        std::to_string(value_dim) + " beside key_length " + std::to_string(config.head_dim));
  }
  if (config.head_dim != 64 && config.head_dim != 128) {
    return NotBuilt("head dimension", std::to_string(config.head_dim));
  }
  config.attention_scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
  return absl::OkStatus();
}

Status ReadRope(const GgufFile& gguf, ModelConfig& config) {
  config.rope_base = 10000.0f;
  if (gguf.Has("llama.rope.freq_base")) {
    PAGODA_ASSIGN_OR_RETURN(config.rope_base, gguf.Float("llama.rope.freq_base"));
  }
  if (!(config.rope_base >= 1.0f && config.rope_base <= 1e12f)) {
    return absl::InvalidArgumentError("model: llama.rope.freq_base = " +
                                      std::to_string(config.rope_base) + " is not in [1, 1e12]");
  }
  PAGODA_ASSIGN_OR_RETURN(config.rope_dim,
                          IntOr(gguf, "llama.rope.dimension_count", kMaxHeadDim, config.head_dim));
  if (config.rope_dim != config.head_dim) {
    return NotBuilt("llama.rope.dimension_count", std::to_string(config.rope_dim) +
                                                      " beside head dimension " +
                                                      std::to_string(config.head_dim));
  }
  config.rope_order = RopeOrder::kAdjacentPairs;
  return absl::OkStatus();
}

std::string Fp32Hex(float value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", std::bit_cast<uint32_t>(value));
  return text;
}

}  // namespace

StatusOr<ModelConfig> ReadModelConfig(const GgufFile& gguf) {
  ModelConfig config;
  PAGODA_ASSIGN_OR_RETURN(std::string_view architecture, gguf.String("general.architecture"));
  if (architecture != "llama") return NotBuilt("general.architecture", QuoteName(architecture));
  config.architecture = architecture;
  PAGODA_RETURN_IF_ERROR(RefuseUnbuiltFeatures(gguf));

  PAGODA_ASSIGN_OR_RETURN(config.num_layers, PositiveInt(gguf, "llama.block_count", kMaxLayers));
  PAGODA_ASSIGN_OR_RETURN(config.hidden, PositiveInt(gguf, "llama.embedding_length", kMaxWidth));
  PAGODA_ASSIGN_OR_RETURN(config.ffn, PositiveInt(gguf, "llama.feed_forward_length", kMaxWidth));
  PAGODA_ASSIGN_OR_RETURN(config.context_length,
                          PositiveInt(gguf, "llama.context_length", kMaxContext));
  PAGODA_RETURN_IF_ERROR(ReadHeads(gguf, config));
  PAGODA_RETURN_IF_ERROR(ReadRope(gguf, config));
  PAGODA_ASSIGN_OR_RETURN(config.rms_eps, gguf.Float("llama.attention.layer_norm_rms_epsilon"));
  if (!(config.rms_eps > 0.0f && config.rms_eps < 1.0f)) {
    return absl::InvalidArgumentError("model: llama.attention.layer_norm_rms_epsilon = " +
                                      std::to_string(config.rms_eps) + " is not in (0, 1)");
  }
  PAGODA_RETURN_IF_ERROR(CheckTensors(gguf, config));
  return config;
}

std::string CanonicalConfig(const ModelConfig& config) {
  const std::pair<const char*, std::string> fields[] = {
      {"architecture", config.architecture},
      {"attention_scale", Fp32Hex(config.attention_scale)},
      {"ffn", std::to_string(config.ffn)},
      {"head_dim", std::to_string(config.head_dim)},
      {"hidden", std::to_string(config.hidden)},
      {"num_heads", std::to_string(config.num_heads)},
      {"num_kv_heads", std::to_string(config.num_kv_heads)},
      {"num_layers", std::to_string(config.num_layers)},
      {"rms_eps", Fp32Hex(config.rms_eps)},
      {"rope_base", Fp32Hex(config.rope_base)},
      {"rope_dim", std::to_string(config.rope_dim)},
      {"rope_order", config.rope_order == RopeOrder::kAdjacentPairs ? "adjacent_pairs" : "halves"},
      {"rope_scaling", "none"},
      {"tied_head", config.tied_head ? "1" : "0"},
      {"vocabulary", std::to_string(config.vocabulary)},
  };
  std::string out;
  for (const auto& [field, value] : fields) out += std::string(field) + "=" + value + "\n";
  return out;
}

}  // namespace pagoda::model
