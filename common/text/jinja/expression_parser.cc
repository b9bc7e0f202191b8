#include "common/text/jinja/expression_parser.h"

#include <algorithm>
#include <array>
#include <memory>

#include "absl/strings/numbers.h"

namespace pagoda::text::jinja {
namespace {

constexpr std::array<std::string_view, 17> kReserved = {
    "true", "True", "false", "False", "none", "None", "and", "or",  "not",
    "in",   "is",   "if",    "else",  "elif", "loop", "for", "self"};

constexpr std::array<std::string_view, 9> kLoopFields = {
    "index", "index0", "first", "last", "length", "revindex", "revindex0", "previtem", "nextitem"};

template <size_t n>
bool IsOneOf(const std::array<std::string_view, n>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

StatusOr<ExprPtr> ExpressionParser::Finish(Expr expr) {
  for (const ExprPtr& operand : expr.operands) {
    if (operand != nullptr) expr.depth = std::max(expr.depth, 1 + operand->depth);
  }
  if (expr.depth > kMaxDepth) {
    return stream_.Error(absl::StrCat("an expression nested deeper than ", kMaxDepth));
  }
  return std::make_unique<const Expr>(std::move(expr));
}

Status ExpressionParser::CheckVariable(std::string_view name) const {
  if (IsOneOf(kReserved, name)) {
    return stream_.Error(absl::StrCat("\"", std::string(name), "\" is not a variable"));
  }
  if (IsGlobalFunction(name)) {
    return stream_.Unsupported(absl::StrCat("the function \"", std::string(name), "\" as a value"));
  }
  return absl::OkStatus();
}

StatusOr<ExprPtr> ExpressionParser::Parse() {
  TokenStream::Nested nested(stream_);
  PAGODA_RETURN_IF_ERROR(nested.status());
  PAGODA_ASSIGN_OR_RETURN(ExprPtr value, ParseUnconditional());
  while (stream_.AcceptName("if")) {
    Expr expr = Start(ExprKind::kConditional);
    PAGODA_ASSIGN_OR_RETURN(ExprPtr condition, ParseUnconditional());
    ExprPtr otherwise;
    if (stream_.AcceptName("else")) {
      PAGODA_ASSIGN_OR_RETURN(otherwise, Parse());
    }
    expr.operands.push_back(std::move(condition));
    expr.operands.push_back(std::move(value));
    expr.operands.push_back(std::move(otherwise));
    PAGODA_ASSIGN_OR_RETURN(value, Finish(std::move(expr)));
  }
  return value;
}

StatusOr<ExprPtr> ExpressionParser::ParseUnconditional() {
  PAGODA_ASSIGN_OR_RETURN(ExprPtr left, ParseAnd());
  while (stream_.AcceptName("or")) {
    Expr expr = Start(ExprKind::kOr);
    PAGODA_ASSIGN_OR_RETURN(ExprPtr right, ParseAnd());
    expr.operands.push_back(std::move(left));
    expr.operands.push_back(std::move(right));
    PAGODA_ASSIGN_OR_RETURN(left, Finish(std::move(expr)));
  }
  return left;
}

StatusOr<ExprPtr> ExpressionParser::ParseAnd() {
  PAGODA_ASSIGN_OR_RETURN(ExprPtr left, ParseNot());
  while (stream_.AcceptName("and")) {
    Expr expr = Start(ExprKind::kAnd);
    PAGODA_ASSIGN_OR_RETURN(ExprPtr right, ParseNot());
    expr.operands.push_back(std::move(left));
    expr.operands.push_back(std::move(right));
    PAGODA_ASSIGN_OR_RETURN(left, Finish(std::move(expr)));
  }
  return left;
}

StatusOr<ExprPtr> ExpressionParser::ParseNot() {
  if (!stream_.AtName("not")) return ParseCompare();
  TokenStream::Nested nested(stream_);
  PAGODA_RETURN_IF_ERROR(nested.status());
  Expr expr = Start(ExprKind::kNot);
  stream_.Next();
  PAGODA_ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  expr.operands.push_back(std::move(operand));
  return Finish(std::move(expr));
}

bool ExpressionParser::AtComparison(Operator& op, int& tokens) const {
  constexpr std::array<std::pair<std::string_view, Operator>, 6> kComparisons = {
      {{"==", Operator::kEqual},
       {"!=", Operator::kNotEqual},
       {"<", Operator::kLess},
       {"<=", Operator::kLessEqual},
       {">", Operator::kGreater},
       {">=", Operator::kGreaterEqual}}};
  tokens = 1;
  for (const auto& [text, comparison] : kComparisons) {
    op = comparison;
    if (stream_.AtOperator(text)) return true;
  }
  op = Operator::kIn;
  if (stream_.AtName("in")) return true;
  op = Operator::kNotIn;
  tokens = 2;
  return stream_.AtName("not") && TokenStream::Is(stream_.Peek(1), TokenKind::kName, "in");
}

StatusOr<ExprPtr> ExpressionParser::ParseCompare() {
  Expr expr = Start(ExprKind::kCompare);
  PAGODA_ASSIGN_OR_RETURN(ExprPtr first, ParseSum());
  Operator op;
  int tokens = 0;
  if (!AtComparison(op, tokens)) return first;
  expr.operands.push_back(std::move(first));
  while (AtComparison(op, tokens)) {
    while (tokens-- > 0) stream_.Next();
    PAGODA_ASSIGN_OR_RETURN(ExprPtr operand, ParseSum());
    expr.operators.push_back(op);
    expr.operands.push_back(std::move(operand));
  }
  return Finish(std::move(expr));
}

StatusOr<ExprPtr> ExpressionParser::ParseSum() {
  PAGODA_ASSIGN_OR_RETURN(ExprPtr left, ParseConcat());
  while (stream_.AtOperator("+") || stream_.AtOperator("-")) {
    Expr expr = Start(ExprKind::kBinary);
    expr.operators.push_back(stream_.Next().text == "+" ? Operator::kAdd : Operator::kSubtract);
    PAGODA_ASSIGN_OR_RETURN(ExprPtr right, ParseConcat());
    expr.operands.push_back(std::move(left));
    expr.operands.push_back(std::move(right));
    PAGODA_ASSIGN_OR_RETURN(left, Finish(std::move(expr)));
  }
  return left;
}

StatusOr<ExprPtr> ExpressionParser::ParseConcat() {
  Expr expr = Start(ExprKind::kConcat);
  PAGODA_ASSIGN_OR_RETURN(ExprPtr first, ParseProduct());
  if (!stream_.AtOperator("~")) return first;
  expr.operands.push_back(std::move(first));
  while (stream_.AcceptOperator("~")) {
    PAGODA_ASSIGN_OR_RETURN(ExprPtr next, ParseProduct());
    expr.operands.push_back(std::move(next));
  }
  return Finish(std::move(expr));
}

StatusOr<ExprPtr> ExpressionParser::ParseProduct() {
  PAGODA_ASSIGN_OR_RETURN(ExprPtr left, ParseUnary(/*with_filters=*/true));
  while (true) {
    Expr expr = Start(ExprKind::kBinary);
    if (stream_.AtOperator("/") || stream_.AtOperator("**")) {
      return stream_.Unsupported(absl::StrCat("the operator ", Describe(stream_.Peek())));
    } else if (stream_.AcceptOperator("*")) {
      expr.operators.push_back(Operator::kMultiply);
    } else if (stream_.AcceptOperator("//")) {
      expr.operators.push_back(Operator::kFloorDivide);
    } else if (stream_.AcceptOperator("%")) {
      expr.operators.push_back(Operator::kModulo);
    } else {
      return left;
    }
    PAGODA_ASSIGN_OR_RETURN(ExprPtr right, ParseUnary(/*with_filters=*/true));
    expr.operands.push_back(std::move(left));
    expr.operands.push_back(std::move(right));
    PAGODA_ASSIGN_OR_RETURN(left, Finish(std::move(expr)));
  }
}

StatusOr<ExprPtr> ExpressionParser::ParseUnary(bool with_filters) {
  ExprPtr value;
  if (stream_.AtOperator("+")) return stream_.Unsupported("the unary operator \"+\"");
  if (stream_.AtOperator("-")) {
    TokenStream::Nested nested(stream_);
    PAGODA_RETURN_IF_ERROR(nested.status());
    Expr expr = Start(ExprKind::kNegate);
    stream_.Next();
    PAGODA_ASSIGN_OR_RETURN(ExprPtr operand, ParseUnary(/*with_filters=*/false));
    expr.operands.push_back(std::move(operand));
    PAGODA_ASSIGN_OR_RETURN(value, Finish(std::move(expr)));
  } else {
    PAGODA_ASSIGN_OR_RETURN(value, ParsePrimary());
  }
  PAGODA_ASSIGN_OR_RETURN(value, ParsePostfix(std::move(value)));
  if (!with_filters) return value;
  return ParseFilters(std::move(value));
}

StatusOr<ExprPtr> ExpressionParser::ParsePrimary() {
  Expr expr = Start(ExprKind::kConstant);
  if (stream_.At(TokenKind::kName)) return ParseNamed();
  if (stream_.At(TokenKind::kString)) {
    std::string text;
    while (stream_.At(TokenKind::kString)) text += stream_.Next().text;  // neighbours join
    expr.constant = MakeString(text, Origin::kTemplate);
    return Finish(std::move(expr));
  }
  if (stream_.At(TokenKind::kInteger)) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(stream_.Peek().text, &number)) return stream_.Error("a broken integer");
    stream_.Next();
    expr.constant = number;
    return Finish(std::move(expr));
  }
  if (stream_.AcceptOperator("(")) return ParseParentheses();
  if (stream_.AcceptOperator("[")) return ParseItems("]", ExprKind::kList);
  if (stream_.AcceptOperator("{")) return ParseDict();
  return stream_.Unexpected("an expression");
}

StatusOr<ExprPtr> ExpressionParser::ParseNamed() {
  Expr expr = Start(ExprKind::kConstant);
  const std::string name = stream_.Peek().text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    expr.constant = name == "true" || name == "True";
  } else if (name == "none" || name == "None") {
    expr.constant = None{};
  } else if (name == "loop") {
    if (!loop_available_) return stream_.Error("\"loop\" outside of a loop's body");
    if (!TokenStream::Is(stream_.Peek(1), TokenKind::kOperator, ".")) {
      return stream_.Unsupported("\"loop\" without a field");
    }
    stream_.Next();
    stream_.Next();
    expr.kind = ExprKind::kLoopField;
    expr.name = stream_.Peek().text;
    if (!stream_.At(TokenKind::kName) || !IsOneOf(kLoopFields, expr.name)) {
      return stream_.Unknown("field of loop", expr.name);
    }
  } else if (TokenStream::Is(stream_.Peek(1), TokenKind::kOperator, "(")) {
    return ParseFunction(name);
  } else {
    PAGODA_RETURN_IF_ERROR(CheckVariable(name));
    expr.kind = ExprKind::kName;
    expr.name = name;
  }
  stream_.Next();
  return Finish(std::move(expr));
}

StatusOr<ExprPtr> ExpressionParser::ParseItems(std::string_view closing, ExprKind kind) {
  Expr expr = Start(kind);
  while (!stream_.AcceptOperator(closing)) {
    if (!expr.operands.empty()) {
      PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator(","));
      if (stream_.AcceptOperator(closing)) break;
    }
    PAGODA_ASSIGN_OR_RETURN(ExprPtr item, Parse());
    expr.operands.push_back(std::move(item));
  }
  return Finish(std::move(expr));
}

// A tuple where there is a comma, or nothing at all.
StatusOr<ExprPtr> ExpressionParser::ParseParentheses() {
  Expr expr = Start(ExprKind::kTuple);
  if (stream_.AcceptOperator(")")) return Finish(std::move(expr));
  PAGODA_ASSIGN_OR_RETURN(ExprPtr first, Parse());
  if (stream_.AcceptOperator(")")) return first;
  expr.operands.push_back(std::move(first));
  while (!stream_.AcceptOperator(")")) {
    PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator(","));
    if (stream_.AcceptOperator(")")) break;
    PAGODA_ASSIGN_OR_RETURN(ExprPtr item, Parse());
    expr.operands.push_back(std::move(item));
  }
  return Finish(std::move(expr));
}

StatusOr<ExprPtr> ExpressionParser::ParseDict() {
  Expr expr = Start(ExprKind::kDict);
  while (!stream_.AcceptOperator("}")) {
    if (!expr.operands.empty()) {
      PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator(","));
      if (stream_.AcceptOperator("}")) break;
    }
    PAGODA_ASSIGN_OR_RETURN(ExprPtr key, Parse());
    PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator(":"));
    PAGODA_ASSIGN_OR_RETURN(ExprPtr value, Parse());
    expr.operands.push_back(std::move(key));
    expr.operands.push_back(std::move(value));
  }
  return Finish(std::move(expr));
}

}  // namespace pagoda::text::jinja
