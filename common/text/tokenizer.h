// Text to token ids and back. It neither renders chat templates (chat_template.h) nor assembles a
// stream's characters (detokenizer.h).
//
// Concurrency: immutable once built; every method may be called from any thread at once.
#ifndef PAGODA_COMMON_TEXT_TOKENIZER_H_
#define PAGODA_COMMON_TEXT_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/text/text_span.h"
#include "common/text/tokenizer_spec.h"

namespace pagoda::text {

// The longest text one call encodes: as long as the longest request body. Merging needs up to
// 36 bytes for each byte of a text that is a single word.
inline constexpr size_t kMaxEncodeBytes = size_t{16} << 20;

// What a prompt of N bytes needs at least is N / longest_token_bytes() tokens: a caller who knows
// the context's length can refuse hopeless prompts before encoding them.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The ids of the spans' joined text. Borders between spans do not show in the ids, except that a
  // control token is recognised only where it lies wholly inside template text; in a message it is
  // spelled out like any other text. No BOS is added: see add_bos().
  // Errors: INVALID_ARGUMENT for text that is not UTF-8 (with the byte's offset) or is too long.
  virtual StatusOr<std::vector<uint32_t>> Encode(std::span<const TextSpan> spans) const = 0;

  StatusOr<std::vector<uint32_t>> Encode(std::string_view text, Origin origin) const {
    TextSpan span{std::string(text), origin};
    return Encode(std::span<const TextSpan>(&span, 1));
  }

  virtual uint32_t vocabulary_size() const = 0;

  // The bytes that the token stands for: any bytes, not always whole characters. Empty for an id
  // outside the vocabulary (a model's output matrix may have more rows than there are tokens).
  virtual std::string_view TokenBytes(uint32_t id) const = 0;

  virtual bool IsControl(uint32_t id) const = 0;

  virtual size_t longest_token_bytes() const = 0;

  // Whether a prompt that no template rendered starts with the BOS token (templates write their
  // own).
  virtual bool add_bos() const = 0;
  virtual std::optional<uint32_t> bos() const = 0;
};

// The bytes of all `ids`, control tokens included, joined.
std::string DecodeBytes(const Tokenizer& tokenizer, std::span<const uint32_t> ids);

// Errors: INVALID_ARGUMENT naming the first id that is not in the vocabulary, and its place.
Status CheckTokenIds(const Tokenizer& tokenizer, std::span<const uint32_t> ids);

// Builds the tokenizer that the spec describes. Errors: UNIMPLEMENTED naming a model or
// pre-tokenizer that is not built in, INVALID_ARGUMENT naming what is wrong with the data.
StatusOr<std::unique_ptr<const Tokenizer>> MakeTokenizer(const TokenizerSpec& spec);

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_TOKENIZER_H_
