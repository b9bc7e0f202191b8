#include "common/text/testing/random_text.h"

#include <cstdint>

#include "common/base/utf8.h"

namespace pagoda::text::testing {

std::vector<std::string> RandomCharacters(std::mt19937& random, size_t count) {
  auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  std::vector<std::string> characters;
  while (characters.size() < count) {
    uint32_t code = 0;
    switch (below(6)) {
      case 0:
        code = U" \t\n\u00A0\u3000'"[below(6)];
        break;
      case 1:
      case 2:
        code = below(0x80);
        break;
      case 3:
        code = below(0x800);
        break;
      case 4:
        code = below(0x10000);
        break;
      default:
        code = below(0x110000);
        break;
    }
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    AppendUtf8(characters.emplace_back(), code);
  }
  return characters;
}

std::string RandomText(std::mt19937& random, size_t characters) {
  std::string text;
  for (const std::string& character : RandomCharacters(random, characters)) text += character;
  return text;
}

std::string RandomBytes(std::mt19937& random, size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace pagoda::text::testing
