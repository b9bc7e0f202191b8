// Template source to tokens, with Jinja2's white space rules (trim_blocks, lstrip_blocks, "-" and
// "+" in tags, one newline dropped at the end), after jinja2/lexer.py.
//
// Concurrency: plain function, no state.
#ifndef PAGODA_COMMON_TEXT_JINJA_LEXER_H_
#define PAGODA_COMMON_TEXT_JINJA_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace pagoda::text::jinja {

enum class TokenKind : uint8_t {
  kText,         // outside of tags
  kOutputBegin,  // {{
  kOutputEnd,    // }}
  kBlockBegin,   // {%
  kBlockEnd,     // %}
  kName,
  kString,   // text: unescaped
  kInteger,  // text: decimal digits
  kOperator,
  kEnd,  // of the source
};

struct Token {
  TokenKind kind;
  int line;  // from 1
  std::string text;
};

// The last token is kEnd. Errors: INVALID_ARGUMENT or UNIMPLEMENTED with the line.
StatusOr<std::vector<Token>> Lex(std::string_view source);

// How a token is called in an error message.
std::string Describe(const Token& token);

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_LEXER_H_
