// The tokens of a template, one after the other, and errors that name their line.
//
// Concurrency: one thread; used while parsing only.
#ifndef PAGODA_COMMON_TEXT_JINJA_TOKEN_STREAM_H_
#define PAGODA_COMMON_TEXT_JINJA_TOKEN_STREAM_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/text/jinja/budget.h"
#include "common/text/jinja/lexer.h"

namespace pagoda::text::jinja {

class TokenStream {
 public:
  // REQUIRES: the last token is kEnd, which is never passed.
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[at_ + ahead < tokens_.size() ? at_ + ahead : tokens_.size() - 1];
  }
  const Token& Next() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  int line() const { return Peek().line; }

  bool At(TokenKind kind) const { return Peek().kind == kind; }
  bool AtOperator(std::string_view text) const { return Is(Peek(), TokenKind::kOperator, text); }
  bool AtName(std::string_view text) const { return Is(Peek(), TokenKind::kName, text); }

  static bool Is(const Token& token, TokenKind kind, std::string_view text) {
    return token.kind == kind && token.text == text;
  }

  bool AcceptOperator(std::string_view text) { return Accept(AtOperator(text)); }
  bool AcceptName(std::string_view text) { return Accept(AtName(text)); }

  Status ExpectOperator(std::string_view text) {
    return AcceptOperator(text) ? absl::OkStatus()
                                : Unexpected(absl::StrCat("\"", std::string(text), "\""));
  }
  Status ExpectName(std::string_view text) {
    return AcceptName(text) ? absl::OkStatus()
                            : Unexpected(absl::StrCat("\"", std::string(text), "\""));
  }
  Status Expect(TokenKind kind) {
    return Accept(At(kind)) ? absl::OkStatus() : Unexpected(Describe({kind, 0, ""}));
  }

  Status Unexpected(std::string_view wanted) const {
    return Error(absl::StrCat("expected ", std::string(wanted), ", found ", Describe(Peek())));
  }
  Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("line ", line(), ": ", std::string(what)));
  }
  Status Unsupported(std::string_view what) const {
    return absl::UnimplementedError(
        absl::StrCat("line ", line(), ": ", std::string(what), " is not supported"));
  }
  Status Unknown(std::string_view kind, std::string_view name) const {
    return absl::UnimplementedError(absl::StrCat("line ", line(), ": unknown ", std::string(kind),
                                                 " \"", std::string(name.substr(0, 80)), "\""));
  }

  // Counts nesting while it lives; check ok() first.
  class Nested {
   public:
    explicit Nested(TokenStream& stream) : stream_(stream) { ++stream_.depth_; }
    ~Nested() { --stream_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    Status status() const {
      if (stream_.depth_ <= kMaxDepth) return absl::OkStatus();
      return stream_.Error(absl::StrCat("nested deeper than ", kMaxDepth));
    }

   private:
    TokenStream& stream_;
  };

 private:
  bool Accept(bool matches) {
    if (matches) Next();
    return matches;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_TOKEN_STREAM_H_
