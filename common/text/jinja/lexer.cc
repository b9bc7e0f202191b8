#include "common/text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"
#include "common/text/jinja/budget.h"
#include "common/text/jinja/python_text.h"
#include "common/text/jinja/string_literal.h"

namespace pagoda::text::jinja {
namespace {

// Longer ones first.
constexpr std::array<std::string_view, 26> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

// "\r\n" and "\r" become "\n"; one newline at the very end goes.
std::string NormalizeNewlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool IsNameStart(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  StatusOr<std::vector<Token>> Run() {
    while (at_ < source_.size()) {
      size_t tag = FindTag();
      if (tag == std::string::npos) {
        Push(TokenKind::kText, source_.substr(at_));
        Advance(source_.size());
        break;
      }
      TakeText(tag);
      PAGODA_RETURN_IF_ERROR(TakeTag());
    }
    Push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("line ", line_, ": ", std::string(what)));
  }
  Status Unsupported(std::string_view what) const {
    return absl::UnimplementedError(
        absl::StrCat("line ", line_, ": ", std::string(what), " is not supported"));
  }

  char Byte(size_t at) const { return at < source_.size() ? source_[at] : '\0'; }
  std::string_view Rest() const { return std::string_view(source_).substr(at_); }

  void Push(TokenKind kind, std::string_view text) {
    if (kind == TokenKind::kText && text.empty()) return;
    tokens_.push_back({kind, line_, std::string(text)});
  }

  void Advance(size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + at_, source_.begin() + to, '\n'));
    at_ = to;
  }

  size_t FindTag() const {
    for (size_t brace = source_.find('{', at_); brace != std::string::npos;
         brace = source_.find('{', brace + 1)) {
      char next = Byte(brace + 1);
      if (next == '{' || next == '%' || next == '#') return brace;
    }
    return std::string::npos;
  }

  // The text before the tag at `tag`, stripped as the tag's sign says.
  void TakeText(size_t tag) {
    std::string_view text = std::string_view(source_).substr(at_, tag - at_);
    char sign = Byte(tag + 2);
    if (sign == '-') {
      text = StripRight(text);
    } else if (sign != '+' && Byte(tag + 1) != '{') {
      // lstrip_blocks: white space alone between the line's start and the tag goes.
      size_t newline = text.rfind('\n');
      size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
      if ((line_start > 0 || at_line_start_) && SkipSpace(text, line_start) == text.size()) {
        text = text.substr(0, line_start);
      }
    }
    Push(TokenKind::kText, text);
    Advance(tag);
  }

  Status TakeTag() {
    char type = Byte(at_ + 1);
    char sign = Byte(at_ + 2);
    size_t inside = at_ + (sign == '-' || sign == '+' ? 3 : 2);
    if (type == '#') return TakeComment(inside);
    bool output = type == '{';
    Push(output ? TokenKind::kOutputBegin : TokenKind::kBlockBegin, "");
    Advance(inside);
    brackets_.clear();
    while (true) {
      if (brackets_.empty() && TakeTagEnd(output)) return absl::OkStatus();
      if (at_ >= source_.size()) return Error("the template ends inside a tag");
      PAGODA_RETURN_IF_ERROR(TakeToken());
    }
  }

  // Where the tag or comment goes on after its end at `end`; `trims`: one newline goes with it.
  void FinishTag(size_t end, char sign, bool trims) {
    if (sign == '-') {
      end = SkipSpace(source_, end);
    } else if (sign != '+' && trims && Byte(end) == '\n') {
      ++end;
    }
    at_line_start_ = Byte(end - 1) == '\n';
    Advance(end);
  }

  Status TakeComment(size_t inside) {
    size_t end = source_.find("#}", inside);
    if (end == std::string::npos) return Error("the template ends inside a comment");
    char sign = end > inside ? Byte(end - 1) : '\0';
    FinishTag(end + 2, sign, /*trims=*/true);
    return absl::OkStatus();
  }

  bool TakeTagEnd(bool output) {
    char sign = Byte(at_);
    bool has_sign = sign == '-' || (sign == '+' && !output);
    size_t end = at_ + (has_sign ? 1 : 0);
    if (std::string_view(source_).substr(end, 2) != (output ? "}}" : "%}")) return false;
    Push(output ? TokenKind::kOutputEnd : TokenKind::kBlockEnd, "");
    FinishTag(end + 2, has_sign ? sign : '\0', /*trims=*/!output);
    return true;
  }

  Status TakeToken() {
    if (size_t end = SkipSpace(source_, at_); end != at_) {
      Advance(end);
      return absl::OkStatus();
    }
    char first = Byte(at_);
    if (IsDigit(first)) return TakeNumber();
    if (IsNameStart(first)) {
      size_t end = at_;
      while (IsNamePart(Byte(end))) ++end;
      if (end - at_ > kMaxNameBytes) {
        return Error(absl::StrCat("a name of more than ", kMaxNameBytes, " bytes"));
      }
      Push(TokenKind::kName, source_.substr(at_, end - at_));
      Advance(end);
      return absl::OkStatus();
    }
    if (first == '\'' || first == '"') return TakeString(first);
    return TakeOperator();
  }

  Status TakeNumber() {
    size_t end = at_;
    while (IsDigit(Byte(end))) ++end;
    if (Byte(end) == '.' && IsDigit(Byte(end + 1))) return Unsupported("a float literal");
    if (IsNamePart(Byte(end)) || (Byte(at_) == '0' && end - at_ > 1)) {
      return Unsupported(absl::StrCat("the number \"", source_.substr(at_, end - at_ + 1), "\""));
    }
    if (end - at_ > 18) return Unsupported("an integer literal of more than 18 digits");
    Push(TokenKind::kInteger, source_.substr(at_, end - at_));
    Advance(end);
    return absl::OkStatus();
  }

  Status TakeString(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return Error("a string without its closing quote");
    auto text = Unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1));
    if (!text.ok()) return Annotate(text.status(), absl::StrCat("line ", line_));
    Push(TokenKind::kString, *text);
    Advance(end + 1);
    return absl::OkStatus();
  }

  Status TakeOperator() {
    for (std::string_view op : kOperators) {
      if (Rest().substr(0, op.size()) != op) continue;
      if (op == "(" || op == "[" || op == "{") {
        brackets_ += op == "(" ? ')' : op == "[" ? ']' : '}';
      } else if (op == ")" || op == "]" || op == "}") {
        if (brackets_.empty() || brackets_.back() != op[0]) {
          return Error(absl::StrCat("unexpected \"", std::string(op), "\""));
        }
        brackets_.pop_back();
      }
      Push(TokenKind::kOperator, op);
      Advance(at_ + op.size());
      return absl::OkStatus();
    }
    size_t length = std::max<size_t>(1, Utf8SequenceLength(source_, at_));
    return Error(absl::StrCat("unexpected character \"", source_.substr(at_, length), "\""));
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;  // the text that follows starts a line
  std::string brackets_;       // closing brackets that are due, the next one last
  std::vector<Token> tokens_;
};

}  // namespace

StatusOr<std::vector<Token>> Lex(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the template has ", source.size(), " bytes; at most ", kMaxTemplateBytes, " are allowed"));
  }
  if (size_t valid = Utf8ValidPrefix(source); valid != source.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the template is not UTF-8 at byte ", valid));
  }
  return Lexer(NormalizeNewlines(source)).Run();
}

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText:
      return "text";
    case TokenKind::kOutputBegin:
      return "\"{{\"";
    case TokenKind::kOutputEnd:
      return "\"}}\"";
    case TokenKind::kBlockBegin:
      return "\"{%\"";
    case TokenKind::kBlockEnd:
      return "\"%}\"";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kName:
    case TokenKind::kInteger:
    case TokenKind::kOperator:
      return absl::StrCat("\"", token.text.substr(0, 80), "\"");
    case TokenKind::kEnd:
      return "the end of the template";
  }
  return "";
}

}  // namespace pagoda::text::jinja
