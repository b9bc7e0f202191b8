// Jinja2's tests: what may follow "is".
#include "common/text/jinja/builtin_tables.h"
#include "common/text/jinja/operators.h"

namespace pagoda::text::jinja {
namespace {

template <bool (*test)(const Value&)>
StatusOr<Value> Test(Budget&, Arguments arguments) {
  return Value(test(*arguments[0]));
}

template <Operator op>
StatusOr<Value> ComparisonTest(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(bool holds, Comparison(budget, op, *arguments[0], *arguments[1]));
  return Value(holds);
}

// What has a length and items by index: in Python, a dict too, and what is undefined.
StatusOr<Value> SequenceTest(Budget&, Arguments arguments) {
  const Value& value = *arguments[0];
  const List* list = AsList(value);
  if (list != nullptr && list->kind == ListKind::kView) {
    return absl::UnimplementedError("\"is sequence\" of a range or a dict's view is not supported");
  }
  return Value(IsUndefined(value) || AsString(value) != nullptr || AsDict(value) != nullptr ||
               (list != nullptr && list->kind != ListKind::kGenerator));
}

StatusOr<int64_t> IntegerOf(const Value& value, std::string_view operation) {
  auto number = AsInteger(value);
  if (!number.has_value()) return TypeError(operation, value);
  return *number;
}

template <int64_t remainder>
StatusOr<Value> ParityTest(Budget&, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(int64_t number, IntegerOf(*arguments[0], "\"is odd\" or \"is even\""));
  return Value((number & 1) == remainder);
}

StatusOr<Value> DivisibleTest(Budget&, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(int64_t number, IntegerOf(*arguments[0], "\"is divisibleby\""));
  PAGODA_ASSIGN_OR_RETURN(int64_t by, IntegerOf(*arguments[1], "\"is divisibleby\""));
  if (by == 0) return absl::InvalidArgumentError("\"is divisibleby\" 0");
  return Value(by == -1 || number % by == 0);
}

bool IsDefined(const Value& value) { return !IsUndefined(value); }
bool IsUndefinedValue(const Value& value) { return IsUndefined(value); }
bool IsNone(const Value& value) { return std::holds_alternative<None>(value); }
bool IsBoolean(const Value& value) { return std::holds_alternative<bool>(value); }
bool IsTrue(const Value& value) { return IsBoolean(value) && std::get<bool>(value); }
bool IsFalse(const Value& value) { return IsBoolean(value) && !std::get<bool>(value); }
bool IsInteger(const Value& value) { return std::holds_alternative<int64_t>(value); }
bool IsNumber(const Value& value) { return AsInteger(value).has_value(); }
bool IsString(const Value& value) { return AsString(value) != nullptr; }
bool IsMapping(const Value& value) { return AsDict(value) != nullptr; }

// As Jinja2 has it, an undefined value can be iterated and indexed (and then is empty or raises).
bool IsIterable(const Value& value) {
  return IsUndefined(value) || IsString(value) || IsMapping(value) || AsList(value) != nullptr;
}

}  // namespace

const std::vector<Builtin>& Tests() {
  static const std::vector<Builtin> table = {
      {"defined", {"value"}, 1, Test<IsDefined>},
      {"undefined", {"value"}, 1, Test<IsUndefinedValue>},
      {"none", {"value"}, 1, Test<IsNone>},
      {"boolean", {"value"}, 1, Test<IsBoolean>},
      {"true", {"value"}, 1, Test<IsTrue>},
      {"false", {"value"}, 1, Test<IsFalse>},
      {"integer", {"value"}, 1, Test<IsInteger>},
      {"number", {"value"}, 1, Test<IsNumber>},
      {"string", {"value"}, 1, Test<IsString>},
      {"mapping", {"value"}, 1, Test<IsMapping>},
      {"iterable", {"value"}, 1, Test<IsIterable>},
      {"sequence", {"value"}, 1, SequenceTest},
      {"equalto", {"", ""}, 2, ComparisonTest<Operator::kEqual>},
      {"eq", {"", ""}, 2, ComparisonTest<Operator::kEqual>},
      {"==", {"", ""}, 2, ComparisonTest<Operator::kEqual>},
      {"ne", {"", ""}, 2, ComparisonTest<Operator::kNotEqual>},
      {"!=", {"", ""}, 2, ComparisonTest<Operator::kNotEqual>},
      {"lt", {"", ""}, 2, ComparisonTest<Operator::kLess>},
      {"le", {"", ""}, 2, ComparisonTest<Operator::kLessEqual>},
      {"gt", {"", ""}, 2, ComparisonTest<Operator::kGreater>},
      {"ge", {"", ""}, 2, ComparisonTest<Operator::kGreaterEqual>},
      {"in", {"value", "seq"}, 2, ComparisonTest<Operator::kIn>},
      {"odd", {"value"}, 1, ParityTest<1>},
      {"even", {"value"}, 1, ParityTest<0>},
      {"divisibleby", {"value", "num"}, 2, DivisibleTest},
  };
  return table;
}

}  // namespace pagoda::text::jinja
