#include "common/text/pre_tokenizer.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pagoda::text {
namespace {

// What Unicode calls White_Space, spelled out: PCRE2's \s also takes U+180E, which no tokenizer
// does.
#define PAGODA_SPACE \
  R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})"

// openai/gpt-2, encoder.py, with \s as above.
constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+)"
                                   "| ?[^" PAGODA_SPACE R"(\p{L}\p{N}]+)"
                                   "|[" PAGODA_SPACE "]+(?![^" PAGODA_SPACE
                                   "])"
                                   "|[" PAGODA_SPACE "]+";

// Each decimal digit by itself. Fractions, superscripts and circled numbers (No, Nl) are not split
// off: transformers' reading of SmolLM2's GGUF keeps them with the space before them, while Hugging
// Face's Digits(individual_digits=True) and llama.cpp would not. Digits proper are the same for all
// three, but for transformers' treatment of those beyond ASCII.
constexpr std::string_view kDigit = R"(\p{Nd})";

struct Known {
  std::string_view name;
  std::vector<std::string_view> stages;
};

const std::vector<Known>& KnownPreTokenizers() {
  static const std::vector<Known> known = {
      {"smollm", {kDigit, kGpt2}},
  };
  return known;
}

}  // namespace

StatusOr<PreTokenizer> PreTokenizer::Make(std::string_view name) {
  for (const Known& known : KnownPreTokenizers()) {
    if (known.name != name) continue;
    std::vector<UnicodeRegex> stages;
    for (std::string_view pattern : known.stages) {
      PAGODA_ASSIGN_OR_RETURN(UnicodeRegex regex, UnicodeRegex::Compile(pattern));
      stages.push_back(std::move(regex));
    }
    return PreTokenizer(std::move(stages));
  }
  return absl::UnimplementedError(
      absl::StrCat("pre-tokenizer \"", std::string(name), "\" is not built in (smollm is)"));
}

Status PreTokenizer::Split(std::string_view text,
                           absl::FunctionRef<void(std::string_view)> piece) const {
  std::vector<UnicodeRegex::Matcher> matchers(stages_.begin(), stages_.end());
  return SplitStage(0, matchers, text, piece);
}

Status PreTokenizer::SplitStage(size_t stage, std::vector<UnicodeRegex::Matcher>& matchers,
                                std::string_view text,
                                absl::FunctionRef<void(std::string_view)> piece) const {
  if (stage == stages_.size()) {
    piece(text);
    return absl::OkStatus();
  }
  size_t at = 0;
  while (at < text.size()) {
    PAGODA_ASSIGN_OR_RETURN(auto match, matchers[stage].Find(text, at));
    size_t begin = match.has_value() ? match->begin : text.size();
    if (begin > at) {
      PAGODA_RETURN_IF_ERROR(SplitStage(stage + 1, matchers, text.substr(at, begin - at), piece));
    }
    if (!match.has_value()) break;
    if (match->end <= match->begin) return absl::InternalError("pre-tokenizer: an empty match");
    PAGODA_RETURN_IF_ERROR(SplitStage(stage + 1, matchers,
                                      text.substr(match->begin, match->end - match->begin), piece));
    at = match->end;
  }
  return absl::OkStatus();
}

}  // namespace pagoda::text
