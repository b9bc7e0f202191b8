// Small llama models with random weights, as complete GGUF files: tests run whole clusters on them
// without a download. The same options give the same bytes on every machine.
//
// The tokenizer is a usable byte-level BPE in the shape of SmolLM2's: control tokens first, then
// the 256 bytes in GPT-2's alphabet, then merges. The text such a model writes is noise.
//
// Concurrency: plain functions.
#ifndef PAGODA_COMMON_MODEL_TESTING_TINY_MODEL_H_
#define PAGODA_COMMON_MODEL_TESTING_TINY_MODEL_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/model/tensor_type.h"

namespace pagoda::model::testing {

struct TinyModelOptions {
  uint64_t seed = 1;
  int32_t layers = 2;
  int32_t hidden = 128;  // a multiple of 32
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t head_dim = 64;
  int32_t ffn = 192;         // a multiple of 32
  int32_t vocabulary = 512;  // at least kTinyMinVocabulary; ids without a merge are unused tokens
  int32_t context_length = 2048;
  bool tied_head = true;
  TensorType weights = TensorType::kQ4_1;    // of the blocks' matrices: F32, Q4_1 or Q8_0
  TensorType embedding = TensorType::kQ8_0;  // of the embedding and of a head of its own
};

// 3 control tokens and 256 bytes.
inline constexpr int32_t kTinyMinVocabulary = 259;
inline constexpr uint32_t kTinyEndOfText = 0;     // <|endoftext|>
inline constexpr uint32_t kTinyMessageStart = 1;  // <|im_start|>, the bos token
inline constexpr uint32_t kTinyMessageEnd = 2;    // <|im_end|>, the eos token

// The file's bytes.
std::string TinyModel(const TinyModelOptions& options);

Status WriteTinyModel(const TinyModelOptions& options, const std::string& path);

}  // namespace pagoda::model::testing

#endif  // PAGODA_COMMON_MODEL_TESTING_TINY_MODEL_H_
