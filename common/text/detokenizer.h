// Token ids to text, piece by piece, for one stream. It never gives out half a character: bytes
// that may still become one are held back; bytes that cannot become U+FFFD, one for each maximal
// ill-formed part (Unicode 15, section 3.9; what Python's errors="replace" does). Stop strings are
// not its business.
//
// Concurrency: one thread at a time; each stream (each of `n` choices) has its own.
#ifndef PAGODA_COMMON_TEXT_DETOKENIZER_H_
#define PAGODA_COMMON_TEXT_DETOKENIZER_H_

#include <cstdint>
#include <span>
#include <string>

#include "common/text/tokenizer.h"

namespace pagoda::text {

enum class ControlText : uint8_t {
  kSkip,  // control tokens give no text
  kShow,  // they are spelled out
};

class Detokenizer {
 public:
  // `tokenizer` must outlive this object.
  explicit Detokenizer(const Tokenizer* tokenizer, ControlText control = ControlText::kSkip)
      : tokenizer_(tokenizer), control_(control) {}

  // The text that became certain through `ids`. All Feeds and the Finish joined are the text of all
  // ids decoded at once. A skipped token does not separate the bytes around it; an id outside the
  // vocabulary gives no text.
  std::string Feed(std::span<const uint32_t> ids);
  std::string Feed(uint32_t id) { return Feed(std::span<const uint32_t>(&id, 1)); }

  // The end: what was held back, as U+FFFD. The object may be fed anew afterwards.
  std::string Finish();

 private:
  const Tokenizer* tokenizer_;
  ControlText control_;
  std::string held_;  // at most 3 bytes between calls: the start of one character
};

// Feed and Finish at once.
std::string Decode(const Tokenizer& tokenizer, std::span<const uint32_t> ids,
                   ControlText control = ControlText::kSkip);

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_DETOKENIZER_H_
