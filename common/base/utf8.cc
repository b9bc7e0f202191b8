#include "common/base/utf8.h"

namespace pagoda {

size_t Utf8SequenceLength(std::string_view text, size_t at) {
  auto byte = [&](size_t i) -> int {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  auto continues = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  int lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;
    return continues(1) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return continues(1) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

size_t Utf8ValidPrefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    size_t length = Utf8SequenceLength(text, at);
    if (length == 0) break;
    at += length;
  }
  return at;
}

void AppendUtf8(std::string& out, uint32_t code) {
  auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace pagoda
