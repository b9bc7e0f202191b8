// The part of ExpressionParser for filters that take the name of a test or filter: select, reject,
// selectattr, rejectattr, map. The names must be literals, so that unknown ones are refused here.
#include <utility>

#include "common/text/jinja/expression_parser.h"

namespace pagoda::text::jinja {
namespace {

// nullptr: not a string literal.
const MarkedString* LiteralString(const ExprPtr& expr) {
  return expr->kind == ExprKind::kConstant ? AsString(expr->constant) : nullptr;
}

// "function.name" to {"function", "name"}; nothing where a part is empty or a number (an index).
std::vector<std::string> SplitPath(const std::string& path) {
  std::vector<std::string> names(1);
  for (char c : path) {
    if (c == '.') {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  for (const std::string& name : names) {
    if (name.find_first_not_of("0123456789") == std::string::npos) return {};
  }
  return names;
}

}  // namespace

StatusOr<ExprPtr> ExpressionParser::ParseSelection(const std::string& filter, ExprPtr sequence) {
  Expr expr = Start(ExprKind::kSelect);
  expr.rejects = filter.starts_with("reject");
  stream_.Next();
  CallArguments arguments;
  if (stream_.AtOperator("(")) {
    PAGODA_ASSIGN_OR_RETURN(arguments, ParseArguments());
  }
  if (!arguments.keywords.empty()) {
    return stream_.Unsupported(absl::StrCat("a keyword of the filter \"", filter, "\""));
  }
  auto next = arguments.positional.begin();
  auto end = arguments.positional.end();
  expr.operands.push_back(std::move(sequence));
  if (filter.ends_with("attr")) {
    const MarkedString* path = next != end ? LiteralString(*next++) : nullptr;
    if (path != nullptr) expr.names = SplitPath(path->text());
    if (expr.names.empty()) {
      return stream_.Unsupported(absl::StrCat("the attribute of the filter \"", filter, "\""));
    }
  }
  if (next == end) return Finish(std::move(expr));
  const MarkedString* name = LiteralString(*next++);
  if (name == nullptr) return stream_.Unsupported("a test whose name is not a literal");
  expr.builtin = FindTest(name->text());
  if (expr.builtin == nullptr) return stream_.Unknown("test", name->text());
  while (next != end) expr.operands.push_back(std::move(*next++));
  size_t given = expr.operands.size();
  if (given < expr.builtin->required || given > expr.builtin->parameters.size()) {
    return stream_.Error(absl::StrCat("the test \"", name->text(), "\" with so many arguments"));
  }
  return Finish(std::move(expr));
}

StatusOr<ExprPtr> ExpressionParser::ParseMap(ExprPtr sequence) {
  Expr expr = Start(ExprKind::kMap);
  stream_.Next();
  CallArguments arguments;
  if (stream_.AtOperator("(")) {
    PAGODA_ASSIGN_OR_RETURN(arguments, ParseArguments());
  }
  expr.operands.push_back(std::move(sequence));
  bool by_attribute = arguments.positional.empty() && arguments.keywords.size() == 1 &&
                      arguments.keywords[0].first == "attribute";
  bool by_filter = arguments.positional.size() == 1 && arguments.keywords.empty();
  if (!by_attribute && !by_filter) return stream_.Unsupported("this form of the filter \"map\"");
  const MarkedString* name =
      LiteralString(by_filter ? arguments.positional[0] : arguments.keywords[0].second);
  if (name == nullptr) return stream_.Unsupported("\"map\" of a name that is not a literal");
  if (by_attribute) {
    expr.names = SplitPath(name->text());
    if (expr.names.empty()) return stream_.Unsupported("the attribute of the filter \"map\"");
  } else {
    expr.builtin = FindFilter(name->text());
    if (expr.builtin == nullptr) return stream_.Unknown("filter", name->text());
    if (expr.builtin->required > 1) {
      return stream_.Error(absl::StrCat("the filter \"", name->text(), "\" lacks an argument"));
    }
  }
  return Finish(std::move(expr));
}

}  // namespace pagoda::text::jinja
