#include "common/model/testing/tiny_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <vector>

#include "common/base/bytes.h"
#include "common/model/model_config.h"
#include "common/model/tensor_inventory.h"
#include "common/model/testing/gguf_writer.h"
#include "common/model/testing/tiny_tokenizer.h"

namespace pagoda::model::testing {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Near normal, mean 0, variance 1: four uniforms are enough for weights and need no libm.
  float Normal() {
    const uint64_t bits = Next();
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<float>((bits >> (16 * i)) & 0xffff) + 0.5f;
    return (sum / 65536.0f - 2.0f) * 1.7320508f;
  }

 private:
  uint64_t state_;
};

// IEEE binary16, round to nearest even. REQUIRES: |value| < 65504, and 0 or above 2^-14.
uint16_t ToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude < (uint32_t{113} << 23)) return sign;  // too small for a normal half: 0
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - (uint32_t{112} << 23)) >> 13));
}

uint8_t Nearest(float value, float low, float high) {
  return static_cast<uint8_t>(static_cast<int8_t>(std::clamp(std::floor(value + 0.5f), low, high)));
}

// ggml's Q4_1: fp16 scale and minimum, then 16 bytes with elements 0-15 low and 16-31 high.
void AppendQ4_1(std::string& out, const float* x) {
  const auto [low, high] = std::minmax_element(x, x + 32);
  const float scale = (*high - *low) / 15.0f;
  AppendLe(out, ToHalf(scale));
  AppendLe(out, ToHalf(*low));
  for (int i = 0; i < 16; ++i) {
    const uint8_t a = Nearest((x[i] - *low) / scale, 0, 15);
    const uint8_t b = Nearest((x[i + 16] - *low) / scale, 0, 15);
    out += static_cast<char>(a | (b << 4));
  }
}

// ggml's Q8_0: fp16 scale, then 32 signed bytes.
void AppendQ8_0(std::string& out, const float* x) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float scale = largest / 127.0f;
  AppendLe(out, ToHalf(scale));
  for (int i = 0; i < 32; ++i) out += static_cast<char>(Nearest(x[i] / scale, -127, 127));
}

std::string Encode(const std::vector<float>& values, TensorType type) {
  std::string out;
  if (type == TensorType::kF32) {
    out.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return out;
  }
  for (size_t i = 0; i < values.size(); i += 32) {
    type == TensorType::kQ4_1 ? AppendQ4_1(out, &values[i]) : AppendQ8_0(out, &values[i]);
  }
  return out;
}

ModelConfig ConfigOf(const TinyModelOptions& options) {
  ModelConfig config;
  config.num_layers = options.layers;
  config.hidden = options.hidden;
  config.ffn = options.ffn;
  config.num_heads = options.heads;
  config.num_kv_heads = options.kv_heads;
  config.head_dim = options.head_dim;
  config.vocabulary = options.vocabulary;
  config.tied_head = options.tied_head;
  return config;
}

void AddConfig(GgufWriter& writer, const TinyModelOptions& options) {
  writer.AddString("general.architecture", "llama");
  writer.AddString("general.name", "tiny random model");
  writer.AddUint("llama.block_count", options.layers);
  writer.AddUint("llama.context_length", options.context_length);
  writer.AddUint("llama.embedding_length", options.hidden);
  writer.AddUint("llama.feed_forward_length", options.ffn);
  writer.AddUint("llama.attention.head_count", options.heads);
  writer.AddUint("llama.attention.head_count_kv", options.kv_heads);
  writer.AddUint("llama.attention.key_length", options.head_dim);
  writer.AddUint("llama.attention.value_length", options.head_dim);
  writer.AddFloat("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.AddFloat("llama.rope.freq_base", 100000.0f);
  writer.AddUint("llama.rope.dimension_count", options.head_dim);
  writer.AddUint("llama.vocab_size", options.vocabulary);
}

}  // namespace

std::string TinyModel(const TinyModelOptions& options) {
  GgufWriter writer;
  AddConfig(writer, options);
  AddTinyTokenizer(writer, options.vocabulary);
  Random random(options.seed);
  for (const TensorSpec& spec : ExpectedTensors(ConfigOf(options))) {
    std::vector<float> values(spec.columns * spec.rows);
    if (spec.role == TensorRole::kVector) {
      for (float& value : values) value = 1.0f + 0.1f * random.Normal();
      writer.AddTensor(spec.name, {spec.columns}, TensorType::kF32,
                       Encode(values, TensorType::kF32));
      continue;
    }
    const bool embedding =
        spec.rows == static_cast<uint64_t>(options.vocabulary) && spec.name.rfind("blk.", 0) != 0;
    // Outputs of variance 1, a little more so that attention and logits are not flat.
    const float size = embedding ? 0.25f : 1.5f / std::sqrt(static_cast<float>(spec.columns));
    for (float& value : values) value = size * random.Normal();
    const TensorType type = embedding ? options.embedding : options.weights;
    writer.AddTensor(spec.name, {spec.columns, spec.rows}, type, Encode(values, type));
  }
  return writer.Finish();
}

Status WriteTinyModel(const TinyModelOptions& options, const std::string& path) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << TinyModel(options);
  out.close();
  if (!out) return absl::InternalError("cannot write " + path);
  return absl::OkStatus();
}

}  // namespace pagoda::model::testing
