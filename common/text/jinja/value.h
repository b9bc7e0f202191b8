// What a template computes with: Python's values, as far as chat templates need them. No floats, no
// callables; strings are marked, lists and dicts never change once made.
//
// Concurrency: plain values; what they share is immutable, but for namespaces, which belong to one
// rendering.
#ifndef PAGODA_COMMON_TEXT_JINJA_VALUE_H_
#define PAGODA_COMMON_TEXT_JINJA_VALUE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/status.h"
#include "common/text/jinja/budget.h"
#include "common/text/jinja/marked_string.h"

namespace pagoda::text::jinja {

struct List;
struct Dict;
struct Namespace;

// A name that has no value: empty when printed, an error when used for more. `what` is for
// messages.
struct Undefined {
  std::string what;
};
struct None {};

using StringRef = std::shared_ptr<const MarkedString>;
using ListRef = std::shared_ptr<const List>;
using DictRef = std::shared_ptr<const Dict>;
using NamespaceRef = std::shared_ptr<Namespace>;

using Value =
    std::variant<Undefined, None, bool, int64_t, StringRef, ListRef, DictRef, NamespaceRef>;

// Python's sequences differ in what equals what, and what can be indexed.
enum class ListKind : uint8_t {
  kList,
  kTuple,
  kView,       // ranges and dict views: to be looped over, counted and searched only
  kGenerator,  // what "select" and the like give: can be used once, so never kept in a variable
};

struct List {
  std::vector<Value> items;
  ListKind kind = ListKind::kList;
  int depth = 1;  // 1 + that of the deepest item
};

// In insertion order, as in Python.
struct Dict {
  std::vector<std::pair<StringRef, Value>> entries;
  int depth = 1;

  const Value* Find(std::string_view key) const;
};

// namespace(): the one thing a loop's body can change for the outside.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;

  const Value* Find(std::string_view name) const;
  void Set(std::string_view name, Value value);
};

Value MakeString(std::string_view text, Origin origin);
Value MakeString(MarkedString text);

// Errors: RESOURCE_EXHAUSTED when nested too deep, UNIMPLEMENTED for a namespace inside.
StatusOr<Value> MakeList(std::vector<Value> items, ListKind kind);
StatusOr<Value> MakeDict(std::vector<std::pair<StringRef, Value>> entries);

// Whether the value may be held by another. Errors: UNIMPLEMENTED for a namespace, which may only
// be a variable (it could hold itself), and for a generator.
Status CheckStorable(const Value& value);
bool IsGenerator(const Value& value);

// The value if it is of that type, or nullptr.
const MarkedString* AsString(const Value& value);
const List* AsList(const Value& value);
const Dict* AsDict(const Value& value);
std::optional<int64_t> AsInteger(const Value& value);  // bools count, as in Python
inline bool IsUndefined(const Value& value) { return std::holds_alternative<Undefined>(value); }

const char* TypeName(const Value& value);
bool Truthy(const Value& value);

// str(value). Errors: UNIMPLEMENTED for lists, dicts and namespaces.
StatusOr<MarkedString> ToText(const Value& value);

// Python's ==.
StatusOr<bool> Equal(Budget& budget, const Value& a, const Value& b);

// What a loop sees: the items, a string's characters, a dict's keys, nothing of an undefined value.
StatusOr<std::vector<Value>> Iterate(Budget& budget, const Value& value);

// Python's `needle in haystack`.
StatusOr<bool> Contains(Budget& budget, const Value& haystack, const Value& needle);

Status UndefinedError(const Value& value);  // REQUIRES: IsUndefined(value)

// "operation" does not work on this type of value.
Status TypeError(std::string_view operation, const Value& value);

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_VALUE_H_
