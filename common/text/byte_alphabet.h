// GPT-2's printable form of bytes: each byte is one character, so that vocabularies are plain text.
// Printable Latin-1 bytes stand for themselves, the other 68 for U+0100 onwards in byte order
// (openai/gpt-2, encoder.py, bytes_to_unicode).
//
// Concurrency: plain functions, no state.
#ifndef PAGODA_COMMON_TEXT_BYTE_ALPHABET_H_
#define PAGODA_COMMON_TEXT_BYTE_ALPHABET_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace pagoda::text {

// The character of each byte, in UTF-8.
const std::array<std::string, 256>& ByteCharacters();

// The bytes that `printable` stands for, or nothing when it has a character that stands for no
// byte.
std::optional<std::string> BytesOfPrintable(std::string_view printable);

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_BYTE_ALPHABET_H_
