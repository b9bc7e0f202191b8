// What Python's str does that templates rely on: its idea of white space, indexing by character.
//
// Concurrency: plain functions, no state.
#ifndef PAGODA_COMMON_TEXT_JINJA_PYTHON_TEXT_H_
#define PAGODA_COMMON_TEXT_JINJA_PYTHON_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::text::jinja {

// The length in bytes of the white space character (str.isspace) at text[at], or 0.
size_t SpaceLength(std::string_view text, size_t at);

// `text` without white space at its end, and the first byte after white space from `at` on.
std::string_view StripRight(std::string_view text);
size_t SkipSpace(std::string_view text, size_t at);

// Where each character begins, and text.size() at the end. REQUIRES: valid UTF-8.
std::vector<size_t> CharacterOffsets(std::string_view text);
size_t CountCharacters(std::string_view text);

bool IsAscii(std::string_view text);

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_PYTHON_TEXT_H_
