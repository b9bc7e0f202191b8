#include "common/text/jinja/evaluator.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text/jinja/operators.h"

namespace pagoda::text::jinja {

StatusOr<Value> Evaluator::Evaluate(const Expr& expr) {
  Status work = budget_.Work(1);
  auto value = work.ok() ? Dispatch(expr) : StatusOr<Value>(work);
  // The innermost line says most; it is there already when an operand failed.
  if (value.ok() || value.status().message().substr(0, 5) == "line ") return value;
  return Annotate(value.status(), absl::StrCat("line ", expr.line));
}

StatusOr<Value> Evaluator::Dispatch(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kConstant:
      return expr.constant;
    case ExprKind::kName:
      return Name(expr);
    case ExprKind::kLoopField:
      return LoopField(expr);
    case ExprKind::kList:
      return Items(expr, ListKind::kList);
    case ExprKind::kTuple:
      return Items(expr, ListKind::kTuple);
    case ExprKind::kDict:
      return DictLiteral(expr);
    case ExprKind::kNamespace:
      return MakeNamespace(expr);
    case ExprKind::kDictCall:
      return DictCall(expr);
    case ExprKind::kAttribute:
      return Attribute(expr);
    case ExprKind::kSubscript:
      return Subscript(expr);
    case ExprKind::kSlice:
      return Slice(expr);
    case ExprKind::kCall:
      return Call(expr);
    case ExprKind::kSelect:
      return Select(expr);
    case ExprKind::kMap:
      return Map(expr);
    case ExprKind::kNot: {
      PAGODA_ASSIGN_OR_RETURN(Value operand, Evaluate(*expr.operands[0]));
      return Value(!Truthy(operand));
    }
    case ExprKind::kNegate:
      return Negate(expr);
    case ExprKind::kBinary:
      return Binary(expr);
    case ExprKind::kCompare:
      return Compare(expr);
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      PAGODA_ASSIGN_OR_RETURN(Value left, Evaluate(*expr.operands[0]));
      if (Truthy(left) == (expr.kind == ExprKind::kOr)) return left;
      return Evaluate(*expr.operands[1]);
    }
    case ExprKind::kConcat:
      return Concat(expr);
    case ExprKind::kConditional:
      return Conditional(expr);
  }
  return absl::InternalError("an expression of no kind");
}

StatusOr<Value> Evaluator::Name(const Expr& expr) {
  PAGODA_RETURN_IF_ERROR(budget_.Work(scopes_.size() / 16));
  const Value* value = scopes_.Find(expr.name);
  return value != nullptr ? *value : Value(Undefined{expr.name});
}

StatusOr<Value> Evaluator::LoopField(const Expr& expr) {
  const auto& [items, index0] = loops_.back();
  auto number = [](size_t n) { return Value(static_cast<int64_t>(n)); };
  const std::string& field = expr.name;
  if (field == "index0") return number(index0);
  if (field == "index") return number(index0 + 1);
  if (field == "length") return number(items->size());
  if (field == "revindex") return number(items->size() - index0);
  if (field == "revindex0") return number(items->size() - index0 - 1);
  if (field == "first") return Value(index0 == 0);
  if (field == "last") return Value(index0 + 1 == items->size());
  if (field == "previtem" && index0 > 0) return (*items)[index0 - 1];
  if (field == "nextitem" && index0 + 1 < items->size()) return (*items)[index0 + 1];
  return Value(Undefined{absl::StrCat("loop.", field)});
}

StatusOr<Value> Evaluator::Items(const Expr& expr, ListKind kind) {
  std::vector<Value> items;
  for (const ExprPtr& operand : expr.operands) {
    PAGODA_ASSIGN_OR_RETURN(Value item, Evaluate(*operand));
    items.push_back(std::move(item));
  }
  return MakeList(std::move(items), kind);
}

StatusOr<Value> Evaluator::DictLiteral(const Expr& expr) {
  std::vector<std::pair<StringRef, Value>> entries;
  for (size_t i = 0; i < expr.operands.size(); i += 2) {
    PAGODA_ASSIGN_OR_RETURN(Value key, Evaluate(*expr.operands[i]));
    PAGODA_ASSIGN_OR_RETURN(Value value, Evaluate(*expr.operands[i + 1]));
    const StringRef* name = std::get_if<StringRef>(&key);
    if (name == nullptr) {
      return absl::UnimplementedError("a dict's key that is not a str is not supported");
    }
    PAGODA_RETURN_IF_ERROR(budget_.Work(entries.size()));
    bool replaced = false;
    for (auto& entry : entries) {
      if (entry.first->text() != (*name)->text()) continue;
      entry.second = value;
      replaced = true;
    }
    if (!replaced) entries.emplace_back(*name, std::move(value));
  }
  return MakeDict(std::move(entries));
}

StatusOr<Value> Evaluator::DictCall(const Expr& expr) {
  std::vector<std::pair<StringRef, Value>> entries;
  for (size_t i = 0; i < expr.operands.size(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(Value value, Evaluate(*expr.operands[i]));
    entries.emplace_back(std::make_shared<const MarkedString>(expr.names[i], Origin::kTemplate),
                         std::move(value));
  }
  return MakeDict(std::move(entries));
}

StatusOr<Value> Evaluator::MakeNamespace(const Expr& expr) {
  auto made = std::make_shared<Namespace>();
  for (size_t i = 0; i < expr.operands.size(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(Value value, Evaluate(*expr.operands[i]));
    PAGODA_RETURN_IF_ERROR(CheckStorable(value));
    made->Set(expr.names[i], std::move(value));
  }
  return Value(std::move(made));
}

StatusOr<Value> Evaluator::Attribute(const Expr& expr) {
  PAGODA_ASSIGN_OR_RETURN(Value object, Evaluate(*expr.operands[0]));
  // Jinja2 asks Python's object for the attribute first, then the dict for the key.
  if (IsPythonAttribute(object, expr.name)) {
    return absl::UnimplementedError(
        absl::StrCat("the method \"", expr.name, "\" without a call is not supported"));
  }
  return Member(object, expr.name);
}

StatusOr<Value> Evaluator::Member(const Value& object, std::string_view name) {
  if (IsUndefined(object)) return UndefinedError(object);
  const Value* found = nullptr;
  if (const Dict* dict = AsDict(object)) {
    PAGODA_RETURN_IF_ERROR(budget_.Work(dict->entries.size()));
    found = dict->Find(name);
  } else if (const NamespaceRef* ref = std::get_if<NamespaceRef>(&object)) {
    if (in_loop_condition_) {
      return absl::UnimplementedError("a namespace in a loop's condition is not supported");
    }
    PAGODA_RETURN_IF_ERROR(budget_.Work((*ref)->attributes.size() / 16));
    found = (*ref)->Find(name);
  }
  if (found != nullptr) return *found;
  if (IsPythonAttribute(object, name) || name.starts_with('_')) {
    return absl::UnimplementedError(
        absl::StrCat("the attribute \"", std::string(name.substr(0, 80)), "\" of a value of type ",
                     TypeName(object), " is not supported"));
  }
  return Value(Undefined{std::string(name)});
}

StatusOr<Value> Evaluator::Subscript(const Expr& expr) {
  PAGODA_ASSIGN_OR_RETURN(Value object, Evaluate(*expr.operands[0]));
  PAGODA_ASSIGN_OR_RETURN(Value index, Evaluate(*expr.operands[1]));
  if (IsUndefined(object)) return UndefinedError(object);
  if (const MarkedString* name = AsString(index)) return Member(object, name->text());
  auto number = AsInteger(index);
  const List* list = AsList(object);
  if (list != nullptr && list->kind != ListKind::kList && list->kind != ListKind::kTuple) {
    return absl::UnimplementedError("an item of a range, view or generator is not supported");
  }
  if (number.has_value() && (list != nullptr || AsString(object) != nullptr)) {
    return ItemAt(budget_, object, *number);
  }
  return Value(Undefined{absl::StrCat("an item of a value of type ", TypeName(object))});
}

StatusOr<Value> Evaluator::Slice(const Expr& expr) {
  PAGODA_ASSIGN_OR_RETURN(Value sequence, Evaluate(*expr.operands[0]));
  Value bounds[3] = {None{}, None{}, None{}};
  for (size_t i = 0; i < 3; ++i) {
    if (expr.operands[i + 1] == nullptr) continue;
    PAGODA_ASSIGN_OR_RETURN(bounds[i], Evaluate(*expr.operands[i + 1]));
  }
  return SliceOf(budget_, sequence, bounds[0], bounds[1], bounds[2]);
}

StatusOr<Value> Evaluator::Call(const Expr& expr) {
  std::vector<std::optional<Value>> arguments(expr.operands.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (expr.operands[i] == nullptr) continue;
    PAGODA_ASSIGN_OR_RETURN(arguments[i], Evaluate(*expr.operands[i]));
  }
  return expr.builtin->apply(budget_, arguments);
}

StatusOr<Value> Evaluator::Path(Value value, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    PAGODA_ASSIGN_OR_RETURN(value, Member(value, name));
  }
  return value;
}

StatusOr<Value> Evaluator::Select(const Expr& expr) {
  PAGODA_ASSIGN_OR_RETURN(Value sequence, Evaluate(*expr.operands[0]));
  std::vector<std::optional<Value>> arguments(
      expr.builtin != nullptr ? expr.builtin->parameters.size() : 1);
  for (size_t i = 1; i < expr.operands.size(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(arguments[i], Evaluate(*expr.operands[i]));
  }
  PAGODA_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(budget_, sequence));
  std::vector<Value> taken;
  for (Value& item : items) {
    PAGODA_RETURN_IF_ERROR(budget_.Iteration());
    PAGODA_ASSIGN_OR_RETURN(Value result, Path(item, expr.names));
    if (expr.builtin != nullptr) {
      arguments[0] = std::move(result);
      PAGODA_ASSIGN_OR_RETURN(result, expr.builtin->apply(budget_, arguments));
    }
    if (Truthy(result) != expr.rejects) taken.push_back(std::move(item));
  }
  return MakeList(std::move(taken), ListKind::kGenerator);
}

StatusOr<Value> Evaluator::Map(const Expr& expr) {
  PAGODA_ASSIGN_OR_RETURN(Value sequence, Evaluate(*expr.operands[0]));
  PAGODA_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(budget_, sequence));
  for (Value& item : items) {
    PAGODA_RETURN_IF_ERROR(budget_.Iteration());
    PAGODA_ASSIGN_OR_RETURN(item, Path(std::move(item), expr.names));
    if (expr.builtin == nullptr) continue;
    std::vector<std::optional<Value>> arguments(expr.builtin->parameters.size());
    arguments[0] = std::move(item);
    PAGODA_ASSIGN_OR_RETURN(item, expr.builtin->apply(budget_, arguments));
  }
  return MakeList(std::move(items), ListKind::kGenerator);
}

StatusOr<Value> Evaluator::Negate(const Expr& expr) {
  PAGODA_ASSIGN_OR_RETURN(Value operand, Evaluate(*expr.operands[0]));
  if (!AsInteger(operand).has_value()) return TypeError("\"-\"", operand);
  return Arithmetic(budget_, Operator::kSubtract, int64_t{0}, operand);
}

StatusOr<Value> Evaluator::Binary(const Expr& expr) {
  PAGODA_ASSIGN_OR_RETURN(Value left, Evaluate(*expr.operands[0]));
  PAGODA_ASSIGN_OR_RETURN(Value right, Evaluate(*expr.operands[1]));
  return Arithmetic(budget_, expr.operators[0], left, right);
}

// "a < b < c" is "a < b and b < c" with b evaluated once.
StatusOr<Value> Evaluator::Compare(const Expr& expr) {
  PAGODA_ASSIGN_OR_RETURN(Value left, Evaluate(*expr.operands[0]));
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(Value right, Evaluate(*expr.operands[i + 1]));
    PAGODA_ASSIGN_OR_RETURN(bool holds, Comparison(budget_, expr.operators[i], left, right));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

StatusOr<Value> Evaluator::Concat(const Expr& expr) {
  MarkedString joined;
  for (const ExprPtr& operand : expr.operands) {
    PAGODA_ASSIGN_OR_RETURN(Value value, Evaluate(*operand));
    PAGODA_ASSIGN_OR_RETURN(MarkedString text, ToText(value));
    PAGODA_RETURN_IF_ERROR(budget_.Bytes(text.size()));
    joined.Append(text);
  }
  return MakeString(std::move(joined));
}

StatusOr<Value> Evaluator::Conditional(const Expr& expr) {
  PAGODA_ASSIGN_OR_RETURN(Value condition, Evaluate(*expr.operands[0]));
  if (Truthy(condition)) return Evaluate(*expr.operands[1]);
  if (expr.operands[2] == nullptr) return Value(Undefined{"the missing else of a conditional"});
  return Evaluate(*expr.operands[2]);
}

}  // namespace pagoda::text::jinja
