#include "common/text/jinja/string_literal.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"

namespace pagoda::text::jinja {
namespace {

std::optional<char> SimpleEscape(char c) {
  constexpr std::string_view kFrom = "\\'\"abfnrtv";
  constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
  size_t found = kFrom.find(c);
  return found == std::string_view::npos ? std::nullopt : std::optional<char>(kTo[found]);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// \xHH, \uHHHH or \UHHHHHHHH whose digits start at `at`.
StatusOr<uint32_t> HexEscape(std::string_view literal, size_t at, size_t digits) {
  uint32_t code = 0;
  for (size_t i = 0; i < digits; ++i) {
    int digit = at + i < literal.size() ? HexDigit(literal[at + i]) : -1;
    if (digit < 0) return absl::InvalidArgumentError("a string escape with too few hex digits");
    code = code << 4 | static_cast<uint32_t>(digit);
  }
  if (code > 0x10FFFF) return absl::InvalidArgumentError("a string escape above U+10FFFF");
  if (code >= 0xD800 && code <= 0xDFFF) {
    return absl::UnimplementedError("a string escape of a surrogate is not supported");
  }
  return code;
}

}  // namespace

StatusOr<std::string> Unescape(std::string_view literal) {
  std::string out;
  for (size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] != '\\') {
      out += literal[i];
      continue;
    }
    char kind = ++i < literal.size() ? literal[i] : '\0';
    if (auto simple = SimpleEscape(kind)) {
      out += *simple;
    } else if (kind == '\n') {
      continue;  // a backslash at a line's end joins the lines
    } else if (kind == 'x' || kind == 'u' || kind == 'U') {
      size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
      PAGODA_ASSIGN_OR_RETURN(uint32_t code, HexEscape(literal, i + 1, digits));
      AppendUtf8(out, code);
      i += digits;
    } else if (kind >= '0' && kind <= '7') {
      uint32_t code = 0;
      size_t end = i;
      while (end < literal.size() && end < i + 3 && literal[end] >= '0' && literal[end] <= '7') {
        code = code * 8 + static_cast<uint32_t>(literal[end++] - '0');
      }
      AppendUtf8(out, code);
      i = end - 1;
    } else if (kind == 'N' || static_cast<unsigned char>(kind) >= 0x80) {
      return absl::UnimplementedError(
          "a string escape \\N or a backslash before a character that is not ASCII is not "
          "supported");
    } else {
      out += '\\';
      out += kind;
    }
  }
  return out;
}

}  // namespace pagoda::text::jinja
