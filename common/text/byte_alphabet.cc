#include "common/text/byte_alphabet.h"

#include "common/base/utf8.h"

namespace pagoda::text {
namespace {

// The highest character in use: U+0100 + 67.
constexpr int kAlphabetEnd = 0x144;

bool StandsForItself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

std::array<std::string, 256> MakeByteCharacters() {
  std::array<std::string, 256> characters;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    int code = StandsForItself(byte) ? byte : next++;
    AppendUtf8(characters[byte], static_cast<uint32_t>(code));
  }
  return characters;
}

// By character: the byte, or -1.
std::array<int, kAlphabetEnd> MakeBytes() {
  std::array<int, kAlphabetEnd> bytes;
  bytes.fill(-1);
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) bytes[StandsForItself(byte) ? byte : next++] = byte;
  return bytes;
}

}  // namespace

const std::array<std::string, 256>& ByteCharacters() {
  static const std::array<std::string, 256> characters = MakeByteCharacters();
  return characters;
}

std::optional<std::string> BytesOfPrintable(std::string_view printable) {
  static const std::array<int, kAlphabetEnd> bytes = MakeBytes();
  std::string out;
  for (size_t i = 0; i < printable.size(); ++i) {
    int code = static_cast<unsigned char>(printable[i]);
    if (code >= 0x80) {
      if ((code & 0xE0) != 0xC0 || i + 1 >= printable.size()) return std::nullopt;
      code = (code & 0x1F) << 6 | (static_cast<unsigned char>(printable[++i]) & 0x3F);
    }
    if (code >= kAlphabetEnd || bytes[code] < 0) return std::nullopt;
    out += static_cast<char>(bytes[code]);
  }
  return out;
}

}  // namespace pagoda::text
