// A tokenizer, its chat template and its special ids as plain data, before anything is built from
// it. Readers of model files (gguf_text.h) fill it; text_model.h builds from it.
//
// Concurrency: plain values.
#ifndef PAGODA_COMMON_TEXT_TOKENIZER_SPEC_H_
#define PAGODA_COMMON_TEXT_TOKENIZER_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace pagoda::text {

// The numbers are those of GGUF's tokenizer.ggml.token_type.
enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // parsed in template spans only, not shown in output
  kUserDefined = 4,  // matched whole wherever it stands
  kUnused = 5,
  kByte = 6,
};

struct TokenizerSpec {
  std::string model;                // GGUF's name of the algorithm: "gpt2" is byte-level BPE
  std::string pre_tokenizer;        // GGUF's name: "smollm"
  std::vector<std::string> tokens;  // by id; the bytes of normal tokens in GPT-2's printable form
  std::vector<TokenType> types;     // by id
  std::vector<std::string> merges;  // "left right", most important first
  bool add_bos = false;             // before a prompt that no template rendered

  std::optional<uint32_t> bos;
  std::optional<uint32_t> eos;
  std::optional<uint32_t> eot;  // end of turn
  std::optional<uint32_t> eom;  // end of message (a tool is called)
  std::optional<uint32_t> unk;
  std::optional<uint32_t> pad;
  std::vector<uint32_t> generation_eos;  // generation_config.json, where there is one

  std::string chat_template;  // Jinja; empty: the model has none

  friend bool operator==(const TokenizerSpec&, const TokenizerSpec&) = default;
};

// The spec in one canonical byte string: equal specs give equal bytes, on every machine. This is
// what a worker tells a router (GetModelInfo.text_model) and what the text digest is taken over.
std::string SerializeSpec(const TokenizerSpec& spec);

// Errors: INVALID_ARGUMENT naming the field for bytes that SerializeSpec did not make.
StatusOr<TokenizerSpec> ParseSpec(std::string_view bytes);

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_TOKENIZER_SPEC_H_
