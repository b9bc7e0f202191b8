// A regular expression over UTF-8 with Unicode properties (PCRE2, JIT-compiled, bounded).
//
// Concurrency: UnicodeRegex is immutable and shared; each thread makes its own Matcher.
#ifndef PAGODA_COMMON_TEXT_UNICODE_REGEX_H_
#define PAGODA_COMMON_TEXT_UNICODE_REGEX_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "common/base/status.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;

namespace pagoda::text {

class UnicodeRegex {
 public:
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };

  // Errors: INVALID_ARGUMENT with PCRE2's words and the offset.
  static StatusOr<UnicodeRegex> Compile(std::string_view pattern);

  // The scratch memory of one thread's matching. The regex must outlive it.
  class Matcher {
   public:
    explicit Matcher(const UnicodeRegex& regex);

    // The first match at or after byte `at`. REQUIRES: `text` is valid UTF-8 and `at` starts a
    // character. Errors: RESOURCE_EXHAUSTED past the match limits.
    StatusOr<std::optional<Range>> Find(std::string_view text, size_t at);

   private:
    struct Free {
      void operator()(pcre2_real_match_data_8* data) const;
      void operator()(pcre2_real_match_context_8* context) const;
    };
    const pcre2_real_code_8* code_;
    std::unique_ptr<pcre2_real_match_data_8, Free> data_;
    std::unique_ptr<pcre2_real_match_context_8, Free> context_;
  };

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  explicit UnicodeRegex(pcre2_real_code_8* code) : code_(code) {}

  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_UNICODE_REGEX_H_
