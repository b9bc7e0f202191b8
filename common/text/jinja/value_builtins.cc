// Filters of any value, methods of dicts, functions.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/text/jinja/builtin_tables.h"
#include "common/text/jinja/json.h"
#include "common/text/jinja/python_text.h"

namespace pagoda::text::jinja {
namespace {

// Jinja2's sandbox has the same limit (MAX_RANGE).
constexpr int64_t kMaxRange = 100'000;

bool IsTruthy(const std::optional<Value>& argument) {
  return argument.has_value() && Truthy(*argument);
}

StatusOr<Value> LengthFilter(Budget& budget, Arguments arguments) {
  const Value& value = *arguments[0];
  if (IsUndefined(value)) return Value(int64_t{0});
  if (IsGenerator(value)) return absl::InvalidArgumentError("\"length\" of a generator");
  if (const List* list = AsList(value)) return Value(static_cast<int64_t>(list->items.size()));
  if (const Dict* dict = AsDict(value)) return Value(static_cast<int64_t>(dict->entries.size()));
  const MarkedString* text = AsString(value);
  if (text == nullptr) return TypeError("\"length\"", value);
  PAGODA_RETURN_IF_ERROR(budget.Bytes(text->size()));
  return Value(static_cast<int64_t>(CountCharacters(text->text())));
}

StatusOr<Value> JoinFilter(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(budget, *arguments[0]));
  MarkedString separator;
  if (arguments[1].has_value()) {
    PAGODA_ASSIGN_OR_RETURN(separator, ToText(*arguments[1]));
  }
  MarkedString out;
  for (size_t i = 0; i < items.size(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(MarkedString text, ToText(items[i]));
    PAGODA_RETURN_IF_ERROR(budget.Bytes(text.size() + separator.size()));
    if (i > 0) out.Append(separator);
    out.Append(text);
  }
  return MakeString(std::move(out));
}

StatusOr<Value> DefaultFilter(Budget& budget, Arguments arguments) {
  const Value& value = *arguments[0];
  if (!IsUndefined(value) && (Truthy(value) || !IsTruthy(arguments[2]))) return value;
  if (arguments[1].has_value()) return *arguments[1];
  return MakeString("", Origin::kTemplate);
}

StatusOr<Value> ToJsonFilter(Budget& budget, Arguments arguments) {
  if (IsTruthy(arguments[1])) {
    return absl::UnimplementedError("\"tojson\" with ensure_ascii is not supported");
  }
  std::optional<int64_t> indent;
  if (arguments[2].has_value() && !std::holds_alternative<None>(*arguments[2])) {
    indent = AsInteger(*arguments[2]);
    if (!indent.has_value()) return TypeError("the indent of \"tojson\"", *arguments[2]);
  }
  PAGODA_ASSIGN_OR_RETURN(MarkedString text, ToJson(budget, *arguments[0], indent));
  return MakeString(std::move(text));
}

StatusOr<Value> FirstFilter(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(budget, *arguments[0]));
  if (items.empty()) return Value(Undefined{"first of nothing"});
  return items.front();
}

StatusOr<Value> LastFilter(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(budget, *arguments[0]));
  if (items.empty()) return Value(Undefined{"last of nothing"});
  return items.back();
}

StatusOr<Value> StringFilter(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(MarkedString text, ToText(*arguments[0]));
  PAGODA_RETURN_IF_ERROR(budget.Bytes(text.size()));
  return MakeString(std::move(text));
}

StatusOr<Value> ListFilter(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(budget, *arguments[0]));
  return MakeList(std::move(items), ListKind::kList);
}

StatusOr<const Dict*> DictOf(Budget& budget, Arguments arguments, std::string_view operation) {
  const Dict* dict = AsDict(*arguments[0]);
  if (dict == nullptr)
    return TypeError(absl::StrCat("\"", std::string(operation), "\""), *arguments[0]);
  PAGODA_RETURN_IF_ERROR(budget.Work(1 + dict->entries.size()));
  return dict;
}

StatusOr<Value> ItemsOf(Budget& budget, Arguments arguments, ListKind kind) {
  PAGODA_ASSIGN_OR_RETURN(const Dict* dict, DictOf(budget, arguments, "items"));
  std::vector<Value> pairs;
  for (const auto& [key, value] : dict->entries) {
    PAGODA_ASSIGN_OR_RETURN(Value pair, MakeList({Value(key), value}, ListKind::kTuple));
    pairs.push_back(std::move(pair));
  }
  return MakeList(std::move(pairs), kind);
}

StatusOr<Value> ItemsMethod(Budget& budget, Arguments arguments) {
  return ItemsOf(budget, arguments, ListKind::kView);
}

StatusOr<Value> ItemsFilter(Budget& budget, Arguments arguments) {
  if (IsUndefined(*arguments[0])) return MakeList({}, ListKind::kGenerator);
  return ItemsOf(budget, arguments, ListKind::kGenerator);
}

StatusOr<Value> KeysMethod(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(const Dict* dict, DictOf(budget, arguments, "keys"));
  std::vector<Value> keys;
  for (const auto& entry : dict->entries) keys.emplace_back(entry.first);
  return MakeList(std::move(keys), ListKind::kView);
}

StatusOr<Value> ValuesMethod(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(const Dict* dict, DictOf(budget, arguments, "values"));
  std::vector<Value> values;
  for (const auto& entry : dict->entries) values.emplace_back(entry.second);
  return MakeList(std::move(values), ListKind::kView);
}

StatusOr<Value> GetMethod(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(const Dict* dict, DictOf(budget, arguments, "get"));
  const MarkedString* key = AsString(*arguments[1]);
  if (key == nullptr) return TypeError("the key of \"get\"", *arguments[1]);
  if (const Value* found = dict->Find(key->text())) return *found;
  if (arguments[2].has_value()) return *arguments[2];
  return Value(None{});
}

StatusOr<Value> RaiseException(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(MarkedString message, ToText(*arguments[0]));
  return absl::InvalidArgumentError(absl::StrCat("the chat template refuses: ", message.text()));
}

StatusOr<Value> Range(Budget& budget, Arguments arguments) {
  int64_t numbers[3] = {0, 0, 1};
  size_t given = 0;
  for (; given < 3 && arguments[given].has_value(); ++given) {
    auto number = AsInteger(*arguments[given]);
    if (!number.has_value()) return TypeError("\"range\"", *arguments[given]);
    numbers[given] = *number;
  }
  if (given == 1) std::swap(numbers[0], numbers[1]);
  auto [start, stop, step] = numbers;
  if (step == 0) return absl::InvalidArgumentError("\"range\" with a step of 0");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (items.size() == kMaxRange) {
      return absl::ResourceExhaustedError(absl::StrCat("a range of more than ", kMaxRange));
    }
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  PAGODA_RETURN_IF_ERROR(budget.Work(items.size()));
  return MakeList(std::move(items), ListKind::kView);
}

}  // namespace

const std::vector<Builtin>& ValueFilters() {
  static const std::vector<Builtin> table = {
      {"length", {"obj"}, 1, LengthFilter},
      {"count", {"obj"}, 1, LengthFilter},
      {"join", {"value", "d"}, 1, JoinFilter},
      {"default", {"value", "default_value", "boolean"}, 1, DefaultFilter},
      {"d", {"value", "default_value", "boolean"}, 1, DefaultFilter},
      {"tojson", {"x", "ensure_ascii", "indent"}, 1, ToJsonFilter},
      {"first", {"seq"}, 1, FirstFilter},
      {"last", {"seq"}, 1, LastFilter},
      {"string", {"object"}, 1, StringFilter},
      {"list", {"value"}, 1, ListFilter},
      {"items", {"value"}, 1, ItemsFilter},
  };
  return table;
}

const std::vector<Builtin>& DictMethods() {
  static const std::vector<Builtin> table = {
      {"items", {""}, 1, ItemsMethod},
      {"keys", {""}, 1, KeysMethod},
      {"values", {""}, 1, ValuesMethod},
      {"get", {"", "", ""}, 2, GetMethod},
  };
  return table;
}

const std::vector<Builtin>& Functions() {
  static const std::vector<Builtin> table = {
      {"raise_exception", {"message"}, 1, RaiseException},
      {"range", {"", "", ""}, 1, Range},
  };
  return table;
}

}  // namespace pagoda::text::jinja
