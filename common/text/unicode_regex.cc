#include "common/text/unicode_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>
#include <string>

#include "absl/strings/str_cat.h"

namespace pagoda::text {
namespace {

// A pre-tokenizer's match looks at each character a few times; these stop a pattern that backtracks
// without end. Heap is in KiB.
constexpr uint32_t kMatchLimit = 50'000'000;
constexpr uint32_t kDepthLimit = 10'000;
constexpr uint32_t kHeapLimitKib = 64 << 10;

std::string ErrorText(int code) {
  PCRE2_UCHAR buffer[256];
  int length = pcre2_get_error_message(code, buffer, sizeof(buffer));
  if (length < 0) return absl::StrCat("PCRE2 error ", code);
  return {reinterpret_cast<const char*>(buffer), static_cast<size_t>(length)};
}

PCRE2_SPTR Units(std::string_view text) {
  // PCRE2 refuses a null subject; an empty view may be one.
  return reinterpret_cast<PCRE2_SPTR>(text.data() != nullptr ? text.data() : "");
}

}  // namespace

void UnicodeRegex::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

StatusOr<UnicodeRegex> UnicodeRegex::Compile(std::string_view pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(Units(pattern), pattern.size(), PCRE2_UTF | PCRE2_UCP, &error,
                                   &offset, nullptr);
  if (code == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("regular expression, offset ", offset, ": ", ErrorText(error)));
  }
  // Where the machine has no JIT, PCRE2 interprets: slower, same result.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return UnicodeRegex(code);
}

void UnicodeRegex::Matcher::Free::operator()(pcre2_real_match_data_8* data) const {
  pcre2_match_data_free(data);
}
void UnicodeRegex::Matcher::Free::operator()(pcre2_real_match_context_8* context) const {
  pcre2_match_context_free(context);
}

UnicodeRegex::Matcher::Matcher(const UnicodeRegex& regex)
    : code_(regex.code_.get()),
      data_(pcre2_match_data_create_from_pattern(code_, nullptr)),
      context_(pcre2_match_context_create(nullptr)) {
  if (data_ == nullptr || context_ == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(context_.get(), kMatchLimit);
  pcre2_set_depth_limit(context_.get(), kDepthLimit);
  pcre2_set_heap_limit(context_.get(), kHeapLimitKib);
}

StatusOr<std::optional<UnicodeRegex::Range>> UnicodeRegex::Matcher::Find(std::string_view text,
                                                                         size_t at) {
  int result = pcre2_match(code_, Units(text), text.size(), at, PCRE2_NO_UTF_CHECK, data_.get(),
                           context_.get());
  if (result == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (result < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("pre-tokenizer, byte ", at, ": ", ErrorText(result)));
  }
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data_.get());
  return Range{range[0], range[1]};
}

}  // namespace pagoda::text
