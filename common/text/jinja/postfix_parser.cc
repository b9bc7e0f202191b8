// The part of ExpressionParser for what follows a value: attributes, subscripts, calls, filters and
// tests.
#include <algorithm>
#include <utility>

#include "common/text/jinja/expression_parser.h"

namespace pagoda::text::jinja {

StatusOr<ExprPtr> ExpressionParser::ParsePostfix(ExprPtr expr) {
  while (true) {
    if (stream_.AcceptOperator(".")) {
      PAGODA_ASSIGN_OR_RETURN(expr, ParseAttribute(std::move(expr)));
    } else if (stream_.AcceptOperator("[")) {
      PAGODA_ASSIGN_OR_RETURN(expr, ParseSubscript(std::move(expr)));
    } else if (stream_.AtOperator("(")) {
      return stream_.Unsupported("calling the result of an expression");
    } else {
      return expr;
    }
  }
}

StatusOr<ExprPtr> ExpressionParser::ParseFilters(ExprPtr expr) {
  while (true) {
    if (stream_.AcceptOperator("|")) {
      PAGODA_ASSIGN_OR_RETURN(expr, ParseFilter(std::move(expr)));
    } else if (stream_.AcceptName("is")) {
      PAGODA_ASSIGN_OR_RETURN(expr, ParseTest(std::move(expr)));
    } else if (stream_.AtOperator("(")) {
      return stream_.Unsupported("calling the result of an expression");
    } else {
      return expr;
    }
  }
}

StatusOr<ExprPtr> ExpressionParser::ParseAttribute(ExprPtr object) {
  Expr expr = Start(ExprKind::kAttribute);
  if (!stream_.At(TokenKind::kName)) return stream_.Unexpected("a name after \".\"");
  expr.name = stream_.Peek().text;
  // Jinja2's sandbox hides these.
  if (expr.name.starts_with('_')) return stream_.Unknown("attribute", expr.name);
  if (TokenStream::Is(stream_.Peek(1), TokenKind::kOperator, "(")) {
    const Builtin* method = FindMethod(expr.name);
    if (method == nullptr) return stream_.Unknown("method", expr.name);
    stream_.Next();
    PAGODA_ASSIGN_OR_RETURN(CallArguments arguments, ParseArguments());
    return BindCall("method", *method, std::move(object), std::move(arguments));
  }
  stream_.Next();
  expr.operands.push_back(std::move(object));
  return Finish(std::move(expr));
}

StatusOr<ExprPtr> ExpressionParser::ParseSubscript(ExprPtr object) {
  Expr expr = Start(ExprKind::kSubscript);
  expr.operands.push_back(std::move(object));
  ExprPtr index;
  if (!stream_.AtOperator(":")) {
    PAGODA_ASSIGN_OR_RETURN(index, Parse());
  }
  expr.operands.push_back(std::move(index));
  if (stream_.AtOperator(":")) {
    expr.kind = ExprKind::kSlice;
    for (int part = 0; part < 2; ++part) {  // stop, step
      ExprPtr value;
      if (stream_.AcceptOperator(":") && !stream_.AtOperator(":") && !stream_.AtOperator("]")) {
        PAGODA_ASSIGN_OR_RETURN(value, Parse());
      }
      expr.operands.push_back(std::move(value));
    }
  }
  if (stream_.AtOperator(",")) return stream_.Unsupported("a subscript with several indices");
  PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator("]"));
  return Finish(std::move(expr));
}

StatusOr<ExprPtr> ExpressionParser::ParseFilter(ExprPtr value) {
  if (!stream_.At(TokenKind::kName)) return stream_.Unexpected("a filter's name");
  const std::string name = stream_.Peek().text;
  if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr") {
    return ParseSelection(name, std::move(value));
  }
  if (name == "map") return ParseMap(std::move(value));
  const Builtin* filter = FindFilter(name);
  if (filter == nullptr) return stream_.Unknown("filter", name);
  stream_.Next();
  CallArguments arguments;
  if (stream_.AtOperator("(")) {
    PAGODA_ASSIGN_OR_RETURN(arguments, ParseArguments());
  }
  return BindCall("filter", *filter, std::move(value), std::move(arguments));
}

StatusOr<ExprPtr> ExpressionParser::ParseTest(ExprPtr value) {
  Expr negation = Start(ExprKind::kNot);
  bool negated = stream_.AcceptName("not");
  if (!stream_.At(TokenKind::kName)) return stream_.Unexpected("a test's name");
  const std::string name = stream_.Peek().text;
  const Builtin* test = FindTest(name);
  if (test == nullptr) return stream_.Unknown("test", name);
  stream_.Next();
  CallArguments arguments;
  bool at_value = stream_.At(TokenKind::kName) || stream_.At(TokenKind::kString) ||
                  stream_.At(TokenKind::kInteger) || stream_.AtOperator("[") ||
                  stream_.AtOperator("{");
  if (stream_.AtOperator("(")) {
    PAGODA_ASSIGN_OR_RETURN(arguments, ParseArguments());
  } else if (stream_.AtName("is")) {
    return stream_.Error("a test of a test");
  } else if (at_value && !stream_.AtName("else") && !stream_.AtName("or") &&
             !stream_.AtName("and")) {
    // "x is equalto y": one argument may stand without parentheses.
    TokenStream::Nested nested(stream_);
    PAGODA_RETURN_IF_ERROR(nested.status());
    PAGODA_ASSIGN_OR_RETURN(ExprPtr argument, ParsePrimary());
    PAGODA_ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
    arguments.positional.push_back(std::move(argument));
  }
  PAGODA_ASSIGN_OR_RETURN(ExprPtr call,
                          BindCall("test", *test, std::move(value), std::move(arguments)));
  if (!negated) return call;
  negation.operands.push_back(std::move(call));
  return Finish(std::move(negation));
}

StatusOr<ExprPtr> ExpressionParser::ParseFunction(const std::string& name) {
  Expr expr = Start(name == "dict" ? ExprKind::kDictCall : ExprKind::kNamespace);
  const Builtin* function = FindFunction(name);
  bool by_keywords = name == "namespace" || name == "dict";
  if (function == nullptr && !by_keywords) return stream_.Unknown("function", name);
  stream_.Next();
  PAGODA_ASSIGN_OR_RETURN(CallArguments arguments, ParseArguments());
  if (!by_keywords) return BindCall("function", *function, nullptr, std::move(arguments));
  if (!arguments.positional.empty()) {
    return stream_.Unsupported(absl::StrCat("\"", name, "\" of a value without a keyword"));
  }
  for (auto& [keyword, value] : arguments.keywords) {
    if (keyword.starts_with('_')) return stream_.Unknown("attribute", keyword);
    expr.names.push_back(std::move(keyword));
    expr.operands.push_back(std::move(value));
  }
  return Finish(std::move(expr));
}

StatusOr<ExpressionParser::CallArguments> ExpressionParser::ParseArguments() {
  CallArguments arguments;
  PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator("("));
  for (bool first = true; !stream_.AcceptOperator(")"); first = false) {
    if (!first) {
      PAGODA_RETURN_IF_ERROR(stream_.ExpectOperator(","));
      if (stream_.AcceptOperator(")")) break;
    }
    if (stream_.AtOperator("*") || stream_.AtOperator("**")) {
      return stream_.Unsupported("unpacking arguments with \"*\" or \"**\"");
    }
    bool keyword =
        stream_.At(TokenKind::kName) && TokenStream::Is(stream_.Peek(1), TokenKind::kOperator, "=");
    std::string name;
    if (keyword) {
      name = stream_.Next().text;
      stream_.Next();
    } else if (!arguments.keywords.empty()) {
      return stream_.Error("an argument without a name after one with a name");
    }
    if (arguments.positional.size() + arguments.keywords.size() == kMaxArguments) {
      return stream_.Error(absl::StrCat("a call with more than ", kMaxArguments, " arguments"));
    }
    PAGODA_ASSIGN_OR_RETURN(ExprPtr value, Parse());
    if (!keyword) {
      arguments.positional.push_back(std::move(value));
      continue;
    }
    for (const auto& other : arguments.keywords) {
      if (other.first == name) return stream_.Error(absl::StrCat("\"", name, "\" is given twice"));
    }
    arguments.keywords.emplace_back(std::move(name), std::move(value));
  }
  return arguments;
}

StatusOr<ExprPtr> ExpressionParser::BindCall(std::string_view kind, const Builtin& builtin,
                                             ExprPtr self, CallArguments arguments) {
  std::string called = absl::StrCat(std::string(kind), " \"", std::string(builtin.name), "\"");
  Expr expr = Start(ExprKind::kCall);
  expr.name = called;
  expr.builtin = &builtin;
  if (self != nullptr) expr.operands.push_back(std::move(self));
  for (ExprPtr& argument : arguments.positional) expr.operands.push_back(std::move(argument));
  if (expr.operands.size() > builtin.parameters.size()) {
    return stream_.Unsupported(absl::StrCat("the ", called, " with so many arguments"));
  }
  expr.operands.resize(builtin.parameters.size());
  for (auto& [keyword, value] : arguments.keywords) {
    auto parameter = std::find(builtin.parameters.begin(), builtin.parameters.end(), keyword);
    if (parameter == builtin.parameters.end()) {
      return stream_.Unknown(absl::StrCat("argument of the ", called, ":"), keyword);
    }
    ExprPtr& place = expr.operands[static_cast<size_t>(parameter - builtin.parameters.begin())];
    if (place != nullptr) return stream_.Error(absl::StrCat("\"", keyword, "\" is given twice"));
    place = std::move(value);
  }
  for (size_t i = 0; i < builtin.required; ++i) {
    if (expr.operands[i] == nullptr) {
      return stream_.Error(absl::StrCat("the ", called, " lacks an argument"));
    }
  }
  return Finish(std::move(expr));
}

}  // namespace pagoda::text::jinja
