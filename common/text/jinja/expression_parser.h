// Expressions, with Jinja2's precedence (jinja2/parser.py): conditional, or, and, not, comparison,
// + -, ~, * // %, unary minus, then attributes, subscripts, calls, filters and tests.
//
// Concurrency: one thread; used while parsing only.
#ifndef PAGODA_COMMON_TEXT_JINJA_EXPRESSION_PARSER_H_
#define PAGODA_COMMON_TEXT_JINJA_EXPRESSION_PARSER_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/text/jinja/ast.h"
#include "common/text/jinja/token_stream.h"

namespace pagoda::text::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  StatusOr<ExprPtr> Parse();               // with "a if b else c"
  StatusOr<ExprPtr> ParseUnconditional();  // without: where "if" follows or must not stand

  // Whether `loop` has a meaning here: set by the statement parser.
  void set_loop_available(bool available) { loop_available_ = available; }
  bool loop_available() const { return loop_available_; }

  // A variable that templates may read or set: not a reserved word, not a function.
  Status CheckVariable(std::string_view name) const;

 private:
  // The arguments of a call as they stand.
  struct CallArguments {
    std::vector<ExprPtr> positional;
    std::vector<std::pair<std::string, ExprPtr>> keywords;
  };

  StatusOr<ExprPtr> ParseAnd();
  StatusOr<ExprPtr> ParseNot();
  StatusOr<ExprPtr> ParseCompare();
  StatusOr<ExprPtr> ParseSum();
  StatusOr<ExprPtr> ParseConcat();
  StatusOr<ExprPtr> ParseProduct();
  StatusOr<ExprPtr> ParseUnary(bool with_filters);
  StatusOr<ExprPtr> ParsePrimary();
  StatusOr<ExprPtr> ParseNamed();
  StatusOr<ExprPtr> ParseItems(std::string_view closing, ExprKind kind);
  StatusOr<ExprPtr> ParseParentheses();
  StatusOr<ExprPtr> ParseDict();
  StatusOr<ExprPtr> ParsePostfix(ExprPtr expr);
  StatusOr<ExprPtr> ParseFilters(ExprPtr expr);
  StatusOr<ExprPtr> ParseAttribute(ExprPtr object);
  StatusOr<ExprPtr> ParseSubscript(ExprPtr object);
  StatusOr<ExprPtr> ParseFilter(ExprPtr value);
  StatusOr<ExprPtr> ParseSelection(const std::string& filter, ExprPtr sequence);
  StatusOr<ExprPtr> ParseMap(ExprPtr sequence);
  StatusOr<ExprPtr> ParseTest(ExprPtr value);
  StatusOr<ExprPtr> ParseFunction(const std::string& name);
  StatusOr<CallArguments> ParseArguments();

  bool AtComparison(Operator& op, int& tokens) const;
  StatusOr<ExprPtr> BindCall(std::string_view kind, const Builtin& builtin, ExprPtr self,
                             CallArguments arguments);
  StatusOr<ExprPtr> Finish(Expr expr);  // checks the depth
  Expr Start(ExprKind kind) const {
    Expr expr;
    expr.kind = kind;
    expr.line = stream_.line();
    return expr;
  }

  TokenStream& stream_;
  bool loop_available_ = false;
};

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_EXPRESSION_PARSER_H_
