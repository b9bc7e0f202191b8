#include "common/kv/encoding.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "common/base/bytes.h"

namespace pagoda {

void AppendLp(std::string& out, std::string_view bytes) {
  AppendLe(out, static_cast<uint32_t>(bytes.size()));
  out.append(bytes);
}

std::string FloatHex(float value) {
  char text[9];
  std::snprintf(text, sizeof(text), "%08x", std::bit_cast<uint32_t>(value));
  return text;
}

std::string_view Plain(std::string_view text) {
  if (text.find_first_of("=;\n") == std::string_view::npos) return text;
  std::fprintf(stderr, "fatal: \"%.*s\" would make an identity ambiguous\n",
               static_cast<int>(std::min<size_t>(text.size(), 200)), text.data());
  std::abort();
}

}  // namespace pagoda
