// Byte-level BPE (GPT-2, SmolLM, Llama 3, Qwen ...): every byte of UTF-8 is a symbol, pre-tokenized
// pieces are merged. A byte that the vocabulary has no token for is left out, as Hugging Face's
// `tokenizers` does without an unknown token (SmolLM2 lacks six control characters and the bytes
// that start planes 4 to 11).
//
// Concurrency: immutable once made; every method may be called from any thread at once.
#ifndef PAGODA_COMMON_TEXT_BYTE_BPE_H_
#define PAGODA_COMMON_TEXT_BYTE_BPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/text/added_tokens.h"
#include "common/text/bpe_merges.h"
#include "common/text/pre_tokenizer.h"
#include "common/text/tokenizer.h"

namespace pagoda::text {

class ByteBpe : public Tokenizer {
 public:
  // Errors: as MakeTokenizer.
  static StatusOr<std::unique_ptr<const Tokenizer>> Make(const TokenizerSpec& spec);

  using Tokenizer::Encode;
  StatusOr<std::vector<uint32_t>> Encode(std::span<const TextSpan> spans) const override;

  uint32_t vocabulary_size() const override { return static_cast<uint32_t>(control_.size()); }
  std::string_view TokenBytes(uint32_t id) const override;
  bool IsControl(uint32_t id) const override { return id < control_.size() && control_[id]; }
  size_t longest_token_bytes() const override { return longest_token_bytes_; }
  bool add_bos() const override { return add_bos_; }
  std::optional<uint32_t> bos() const override { return bos_; }

 private:
  // Ids by printable text, of the tokens that merging may give.
  using Vocabulary = absl::flat_hash_map<std::string_view, uint32_t>;

  explicit ByteBpe(PreTokenizer pre_tokenizer) : pre_tokenizer_(std::move(pre_tokenizer)) {}

  Status AddTokens(const TokenizerSpec& spec, Vocabulary& vocabulary);
  Status AddMerges(const TokenizerSpec& spec, const Vocabulary& vocabulary);

  // Appends the ids of text without added tokens.
  Status EncodePlain(std::string_view text, BpeMerges::Scratch& scratch,
                     std::vector<uint32_t>& ids) const;

  PreTokenizer pre_tokenizer_;
  AddedTokens added_;
  BpeMerges merges_;
  std::array<std::optional<uint32_t>, 256> byte_ids_;  // the token of each single byte
  std::string bytes_;                                  // of all tokens, joined
  std::vector<uint32_t> ends_;  // [vocabulary size] where each token's bytes end
  std::vector<bool> control_;   // [vocabulary size]
  size_t longest_token_bytes_ = 1;
  bool add_bos_ = false;
  std::optional<uint32_t> bos_;
};

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_BYTE_BPE_H_
