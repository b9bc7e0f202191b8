#include "common/model/tensor_inventory.h"

#include <unordered_set>

namespace pagoda::model {
namespace {

constexpr uint64_t kMaxVocabulary = 1 << 20;  // above every published tokenizer (largest: 262,144)

std::string Shape(const GgufTensor& tensor) {
  std::string text = "[";
  for (int i = 0; i < tensor.num_dims; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.dims[i]);
  }
  return text + "]";
}

Status CheckOne(const GgufTensor& tensor, const TensorSpec& spec) {
  const bool vector = spec.role == TensorRole::kVector;
  const std::string name = "model: tensor " + QuoteName(tensor.name);
  if (tensor.num_dims != (vector ? 1 : 2) || tensor.dims[0] != spec.columns ||
      tensor.dims[1] != spec.rows) {
    return absl::InvalidArgumentError(name + " has the shape " + Shape(tensor) +
                                      ", the configuration needs [" + std::to_string(spec.columns) +
                                      (vector ? "" : ", " + std::to_string(spec.rows)) + "]");
  }
  const TensorType type = tensor.type;
  const bool known = type == TensorType::kF32 ||
                     (!vector && (type == TensorType::kQ4_1 || type == TensorType::kQ8_0));
  if (!known) {
    return absl::UnimplementedError(name + " has the type " + TensorTypeName(type) +
                                    ", which is not supported here (" +
                                    (vector ? "F32 is" : "F32, Q4_1 and Q8_0 are") + ")");
  }
  return absl::OkStatus();
}

}  // namespace

std::string LayerTensorName(int32_t layer, std::string_view part) {
  return "blk." + std::to_string(layer) + "." + std::string(part) + ".weight";
}

std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config) {
  const uint64_t hidden = config.hidden, ffn = config.ffn, vocabulary = config.vocabulary;
  const uint64_t q = config.q_width(), kv = config.kv_width();
  std::vector<TensorSpec> specs = {
      {"token_embd.weight", TensorRole::kMatrix, hidden, vocabulary},
      {"output_norm.weight", TensorRole::kVector, hidden, 1},
  };
  if (!config.tied_head) {
    specs.push_back({"output.weight", TensorRole::kMatrix, hidden, vocabulary});
  }
  for (int32_t layer = 0; layer < config.num_layers; ++layer) {
    auto add = [&](std::string_view part, TensorRole role, uint64_t columns, uint64_t rows) {
      specs.push_back({LayerTensorName(layer, part), role, columns, rows});
    };
    add("attn_norm", TensorRole::kVector, hidden, 1);
    add("attn_q", TensorRole::kMatrix, hidden, q);
    add("attn_k", TensorRole::kMatrix, hidden, kv);
    add("attn_v", TensorRole::kMatrix, hidden, kv);
    add("attn_output", TensorRole::kMatrix, q, hidden);
    add("ffn_norm", TensorRole::kVector, hidden, 1);
    add("ffn_gate", TensorRole::kMatrix, hidden, ffn);
    add("ffn_up", TensorRole::kMatrix, hidden, ffn);
    add("ffn_down", TensorRole::kMatrix, ffn, hidden);
  }
  return specs;
}

Status CheckTensors(const GgufFile& gguf, ModelConfig& config) {
  const GgufTensor* embedding = gguf.FindTensor("token_embd.weight");
  if (embedding == nullptr) {
    return absl::NotFoundError("model: tensor \"token_embd.weight\" is missing");
  }
  if (embedding->dims[1] > kMaxVocabulary) {
    return absl::InvalidArgumentError("model: tensor \"token_embd.weight\" has " +
                                      std::to_string(embedding->dims[1]) + " rows, the limit is " +
                                      std::to_string(kMaxVocabulary));
  }
  config.vocabulary = static_cast<int32_t>(embedding->dims[1]);
  config.tied_head = gguf.FindTensor("output.weight") == nullptr;

  std::unordered_set<std::string_view> read;
  const std::vector<TensorSpec> specs = ExpectedTensors(config);
  for (const TensorSpec& spec : specs) {
    const GgufTensor* tensor = gguf.FindTensor(spec.name);
    if (tensor == nullptr) {
      return absl::NotFoundError("model: tensor " + QuoteName(spec.name) + " is missing");
    }
    PAGODA_RETURN_IF_ERROR(CheckOne(*tensor, spec));
    read.insert(tensor->name);
  }
  for (const GgufTensor& tensor : gguf.tensors()) {
    if (read.contains(tensor.name)) continue;
    return absl::UnimplementedError("model: tensor " + QuoteName(tensor.name) +
                                    " is not part of the computation that this build knows");
  }
  return absl::OkStatus();
}

}  // namespace pagoda::model
