// Cuts text into the pieces inside which BPE merges. A pre-tokenizer is a sequence of regular
// expressions; each one cuts every piece of the one before into its matches and what lies between.
//
// Concurrency: immutable once made; Split may be called from any thread at once.
#ifndef PAGODA_COMMON_TEXT_PRE_TOKENIZER_H_
#define PAGODA_COMMON_TEXT_PRE_TOKENIZER_H_

#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/status.h"
#include "common/text/unicode_regex.h"

namespace pagoda::text {

class PreTokenizer {
 public:
  // By GGUF's name (tokenizer.ggml.pre). Errors: UNIMPLEMENTED naming one that is not built in.
  static StatusOr<PreTokenizer> Make(std::string_view name);

  // Calls `piece` for each piece in order; joined they are `text`. REQUIRES: valid UTF-8.
  Status Split(std::string_view text, absl::FunctionRef<void(std::string_view)> piece) const;

 private:
  explicit PreTokenizer(std::vector<UnicodeRegex> stages) : stages_(std::move(stages)) {}

  Status SplitStage(size_t stage, std::vector<UnicodeRegex::Matcher>& matchers,
                    std::string_view text, absl::FunctionRef<void(std::string_view)> piece) const;

  std::vector<UnicodeRegex> stages_;
};

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_PRE_TOKENIZER_H_
