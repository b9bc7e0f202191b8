#include "common/text/jinja/python_text.h"

#include <algorithm>

namespace pagoda::text::jinja {

size_t SpaceLength(std::string_view text, size_t at) {
  auto byte = [&](size_t i) -> int {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  int first = byte(0);
  if ((first >= 0x09 && first <= 0x0D) || (first >= 0x1C && first <= 0x20)) return 1;
  if (first == 0xC2 && (byte(1) == 0x85 || byte(1) == 0xA0)) return 2;
  if (first == 0xE1 && byte(1) == 0x9A && byte(2) == 0x80) return 3;  // U+1680
  if (first == 0xE2 && byte(1) == 0x80) {
    int last = byte(2);  // U+2000 to U+200A, U+2028, U+2029, U+202F
    if ((last >= 0x80 && last <= 0x8A) || last == 0xA8 || last == 0xA9 || last == 0xAF) return 3;
  }
  if (first == 0xE2 && byte(1) == 0x81 && byte(2) == 0x9F) return 3;  // U+205F
  if (first == 0xE3 && byte(1) == 0x80 && byte(2) == 0x80) return 3;  // U+3000
  return 0;
}

std::string_view StripRight(std::string_view text) {
  while (!text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    if (SpaceLength(text, begin) == 0) break;
    text = text.substr(0, begin);
  }
  return text;
}

size_t SkipSpace(std::string_view text, size_t at) {
  while (at < text.size()) {
    size_t length = SpaceLength(text, at);
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::vector<size_t> CharacterOffsets(std::string_view text) {
  std::vector<size_t> offsets;
  for (size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) offsets.push_back(at);
  }
  offsets.push_back(text.size());
  return offsets;
}

size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  }));
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

}  // namespace pagoda::text::jinja
