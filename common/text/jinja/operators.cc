#include "common/text/jinja/operators.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text/jinja/python_text.h"

namespace pagoda::text::jinja {
namespace {

const char* Symbol(Operator op) {
  constexpr const char* kSymbols[] = {
      "+", "-", "*", "//", "%", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSymbols[static_cast<int>(op)];
}

Status OperandError(Operator op, const Value& left, const Value& right) {
  if (IsUndefined(left)) return UndefinedError(left);
  if (IsUndefined(right)) return UndefinedError(right);
  return absl::InvalidArgumentError(absl::StrCat("\"", Symbol(op), "\" does not work on ",
                                                 TypeName(left), " and ", TypeName(right)));
}

// Python rounds quotients down; C++ towards zero.
bool FloorDivide(int64_t a, int64_t b, int64_t& quotient, int64_t& remainder) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  quotient = a / b;
  remainder = a % b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) {
    --quotient;
    remainder += b;
  }
  return true;
}

StatusOr<Value> IntegerArithmetic(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  int64_t other = 0;
  bool ok = true;
  switch (op) {
    case Operator::kAdd:
      ok = !__builtin_add_overflow(a, b, &result);
      break;
    case Operator::kSubtract:
      ok = !__builtin_sub_overflow(a, b, &result);
      break;
    case Operator::kMultiply:
      ok = !__builtin_mul_overflow(a, b, &result);
      break;
    case Operator::kFloorDivide:
      ok = FloorDivide(a, b, result, other);
      break;
    default:
      ok = FloorDivide(a, b, other, result);
      break;
  }
  if (ok) return Value(result);
  return absl::InvalidArgumentError(
      absl::StrCat(a, " ", Symbol(op), " ", b, ": division by zero, or more than 64 bits"));
}

StatusOr<Value> Join(Budget& budget, const Value& left, const Value& right) {
  const MarkedString* text = AsString(left);
  const MarkedString* more_text = AsString(right);
  if (text != nullptr && more_text != nullptr) {
    PAGODA_RETURN_IF_ERROR(budget.Bytes(text->size() + more_text->size()));
    MarkedString joined = *text;
    joined.Append(*more_text);
    return MakeString(std::move(joined));
  }
  const List* list = AsList(left);
  const List* more = AsList(right);
  if (list == nullptr || more == nullptr || list->kind != more->kind ||
      list->kind == ListKind::kView || list->kind == ListKind::kGenerator) {
    return OperandError(Operator::kAdd, left, right);
  }
  PAGODA_RETURN_IF_ERROR(budget.Work(list->items.size() + more->items.size()));
  std::vector<Value> items = list->items;
  items.insert(items.end(), more->items.begin(), more->items.end());
  return MakeList(std::move(items), list->kind);
}

template <typename T>
bool Ordered(Operator op, const T& a, const T& b) {
  switch (op) {
    case Operator::kLess:
      return a < b;
    case Operator::kLessEqual:
      return a <= b;
    case Operator::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

// The places that a slice takes, as Python's slice.indices gives them.
struct Places {
  int64_t start;
  int64_t stop;
  int64_t step;
};

StatusOr<std::optional<int64_t>> SliceBound(const Value& value) {
  if (std::holds_alternative<None>(value)) return std::nullopt;
  auto number = AsInteger(value);
  if (!number.has_value()) return TypeError("a slice", value);
  return number;
}

StatusOr<Places> SlicePlaces(int64_t length, const Value& start, const Value& stop,
                             const Value& step) {
  PAGODA_ASSIGN_OR_RETURN(auto step_given, SliceBound(step));
  PAGODA_ASSIGN_OR_RETURN(auto start_given, SliceBound(start));
  PAGODA_ASSIGN_OR_RETURN(auto stop_given, SliceBound(stop));
  int64_t by = step_given.value_or(1);
  if (by == 0) return absl::InvalidArgumentError("a slice with a step of 0");
  by = std::clamp(by, -length - 1, length + 1);  // further than the whole is as far as the whole
  int64_t low = by < 0 ? -1 : 0;
  int64_t high = by < 0 ? length - 1 : length;
  auto place = [&](std::optional<int64_t> given, int64_t absent) {
    if (!given.has_value()) return absent;
    int64_t at = std::clamp(*given, -length - 1, length);
    return std::clamp(at < 0 ? at + length : at, low, high);
  };
  return Places{place(start_given, by < 0 ? high : low), place(stop_given, by < 0 ? low : high),
                by};
}

}  // namespace

StatusOr<Value> Arithmetic(Budget& budget, Operator op, const Value& left, const Value& right) {
  auto a = AsInteger(left);
  auto b = AsInteger(right);
  if (a.has_value() && b.has_value()) return IntegerArithmetic(op, *a, *b);
  if (op == Operator::kAdd) return Join(budget, left, right);
  if (op == Operator::kModulo && AsString(left) != nullptr) {
    return absl::UnimplementedError("formatting with \"%\" is not supported");
  }
  if (op == Operator::kMultiply && !IsUndefined(left) && !IsUndefined(right)) {
    return absl::UnimplementedError(
        absl::StrCat("\"*\" of ", TypeName(left), " and ", TypeName(right), " is not supported"));
  }
  return OperandError(op, left, right);
}

StatusOr<bool> Comparison(Budget& budget, Operator op, const Value& left, const Value& right) {
  if (op == Operator::kEqual) return Equal(budget, left, right);
  if (op == Operator::kIn) return Contains(budget, right, left);
  if (op == Operator::kNotEqual || op == Operator::kNotIn) {
    PAGODA_ASSIGN_OR_RETURN(bool holds, op == Operator::kNotIn ? Contains(budget, right, left)
                                                               : Equal(budget, left, right));
    return !holds;
  }
  auto a = AsInteger(left);
  auto b = AsInteger(right);
  if (a.has_value() && b.has_value()) return Ordered(op, *a, *b);
  const MarkedString* text = AsString(left);
  const MarkedString* other = AsString(right);
  if (text == nullptr || other == nullptr) return OperandError(op, left, right);
  PAGODA_RETURN_IF_ERROR(budget.Bytes(std::min(text->size(), other->size())));
  return Ordered(op, text->text(), other->text());  // UTF-8 sorts as its characters do
}

StatusOr<Value> SliceOf(Budget& budget, const Value& sequence, const Value& start,
                        const Value& stop, const Value& step) {
  const List* list = AsList(sequence);
  const MarkedString* text = AsString(sequence);
  if (list != nullptr && list->kind != ListKind::kList && list->kind != ListKind::kTuple) {
    return absl::UnimplementedError("a slice of a range, view or generator is not supported");
  }
  std::vector<size_t> offsets;
  if (text != nullptr) {
    PAGODA_RETURN_IF_ERROR(budget.Bytes(8 * text->size()));
    offsets = CharacterOffsets(text->text());
  } else if (list == nullptr) {
    return TypeError("a slice", sequence);
  }
  size_t length = list != nullptr ? list->items.size() : offsets.size() - 1;
  PAGODA_ASSIGN_OR_RETURN(Places places,
                          SlicePlaces(static_cast<int64_t>(length), start, stop, step));
  std::vector<Value> items;
  MarkedString characters;
  for (int64_t i = places.start; places.step > 0 ? i < places.stop : i > places.stop;
       i += places.step) {
    PAGODA_RETURN_IF_ERROR(budget.Work(1));
    if (list != nullptr) {
      items.push_back(list->items[i]);
    } else {
      characters.AppendRange(*text, offsets[i], offsets[i + 1]);
    }
  }
  return list != nullptr ? MakeList(std::move(items), list->kind)
                         : StatusOr<Value>(MakeString(std::move(characters)));
}

StatusOr<Value> ItemAt(Budget& budget, const Value& sequence, int64_t index) {
  const List* list = AsList(sequence);
  const MarkedString* text = AsString(sequence);
  std::vector<size_t> offsets;
  if (text != nullptr) {
    PAGODA_RETURN_IF_ERROR(budget.Bytes(8 * text->size()));
    offsets = CharacterOffsets(text->text());
  }
  int64_t length = static_cast<int64_t>(list != nullptr ? list->items.size() : offsets.size() - 1);
  if (index < -length || index >= length) return Value(Undefined{absl::StrCat("item ", index)});
  if (index < 0) index += length;
  if (list != nullptr) return list->items[index];
  return MakeString(text->Slice(offsets[index], offsets[index + 1]));
}

}  // namespace pagoda::text::jinja
