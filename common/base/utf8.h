// Well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF).
//
// Concurrency: plain functions, no state.
#ifndef PAGODA_COMMON_BASE_UTF8_H_
#define PAGODA_COMMON_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda {

// The length in bytes (1 to 4) of the well-formed sequence that starts at text[at], or 0 when there
// is none. REQUIRES: at < text.size().
size_t Utf8SequenceLength(std::string_view text, size_t at);

// The offset of the first byte that does not belong to a well-formed sequence, or text.size().
size_t Utf8ValidPrefix(std::string_view text);

// REQUIRES: `code` is a Unicode scalar value.
void AppendUtf8(std::string& out, uint32_t code);

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_UTF8_H_
