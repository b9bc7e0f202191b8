#include "common/text/jinja/value.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/text/jinja/python_text.h"

namespace pagoda::text::jinja {
namespace {

int DepthOf(const Value& value) {
  if (const List* list = AsList(value)) return list->depth;
  if (const Dict* dict = AsDict(value)) return dict->depth;
  return 0;
}

Status CheckItem(const Value& value, int& depth) {
  PAGODA_RETURN_IF_ERROR(CheckStorable(value));
  depth = std::max(depth, 1 + DepthOf(value));
  if (depth > kMaxValueDepth) {
    return absl::ResourceExhaustedError(
        absl::StrCat("lists or dicts nested deeper than ", kMaxValueDepth));
  }
  return absl::OkStatus();
}

StatusOr<bool> EqualLists(Budget& budget, const List& a, const List& b) {
  if (a.kind == ListKind::kGenerator || b.kind == ListKind::kGenerator) return false;
  if (a.kind != b.kind) return false;
  if (a.kind == ListKind::kView) {
    return absl::UnimplementedError("comparing ranges or dicts' views is not supported");
  }
  if (a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(bool equal, Equal(budget, a.items[i], b.items[i]));
    if (!equal) return false;
  }
  return true;
}

StatusOr<bool> EqualDicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    PAGODA_RETURN_IF_ERROR(budget.Work(b.entries.size()));
    const Value* other = b.Find(key->text());
    if (other == nullptr) return false;
    PAGODA_ASSIGN_OR_RETURN(bool equal, Equal(budget, value, *other));
    if (!equal) return false;
  }
  return true;
}

}  // namespace

const Value* Dict::Find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name->text() == key) return &value;
  }
  return nullptr;
}

const Value* Namespace::Find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::Set(std::string_view name, Value value) {
  for (auto& [key, held] : attributes) {
    if (key == name) {
      held = std::move(value);
      return;
    }
  }
  attributes.emplace_back(std::string(name), std::move(value));
}

Value MakeString(std::string_view text, Origin origin) {
  return std::make_shared<const MarkedString>(text, origin);
}

Value MakeString(MarkedString text) {
  return std::make_shared<const MarkedString>(std::move(text));
}

StatusOr<Value> MakeList(std::vector<Value> items, ListKind kind) {
  List list{.items = std::move(items), .kind = kind};
  for (const Value& item : list.items) PAGODA_RETURN_IF_ERROR(CheckItem(item, list.depth));
  return Value(std::make_shared<const List>(std::move(list)));
}

StatusOr<Value> MakeDict(std::vector<std::pair<StringRef, Value>> entries) {
  Dict dict{.entries = std::move(entries)};
  for (const auto& entry : dict.entries)
    PAGODA_RETURN_IF_ERROR(CheckItem(entry.second, dict.depth));
  return Value(std::make_shared<const Dict>(std::move(dict)));
}

Status CheckStorable(const Value& value) {
  if (IsGenerator(value)) {
    return absl::UnimplementedError("keeping a generator is not supported; \"|list\" makes a list");
  }
  if (!std::holds_alternative<NamespaceRef>(value)) return absl::OkStatus();
  return absl::UnimplementedError("a namespace inside another value is not supported");
}

bool IsGenerator(const Value& value) {
  const List* list = AsList(value);
  return list != nullptr && list->kind == ListKind::kGenerator;
}

const MarkedString* AsString(const Value& value) {
  const StringRef* ref = std::get_if<StringRef>(&value);
  return ref != nullptr ? ref->get() : nullptr;
}

const List* AsList(const Value& value) {
  const ListRef* ref = std::get_if<ListRef>(&value);
  return ref != nullptr ? ref->get() : nullptr;
}

const Dict* AsDict(const Value& value) {
  const DictRef* ref = std::get_if<DictRef>(&value);
  return ref != nullptr ? ref->get() : nullptr;
}

std::optional<int64_t> AsInteger(const Value& value) {
  if (const int64_t* number = std::get_if<int64_t>(&value)) return *number;
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  return std::nullopt;
}

const char* TypeName(const Value& value) {
  constexpr const char* kNames[] = {"undefined", "none", "bool", "int",
                                    "str",       "list", "dict", "namespace"};
  return kNames[value.index()];
}

bool Truthy(const Value& value) {
  if (auto number = AsInteger(value)) return *number != 0;
  if (const MarkedString* text = AsString(value)) return !text->empty();
  if (const List* list = AsList(value)) return !list->items.empty() || IsGenerator(value);
  if (const Dict* dict = AsDict(value)) return !dict->entries.empty();
  return std::holds_alternative<NamespaceRef>(value);
}

StatusOr<MarkedString> ToText(const Value& value) {
  if (const MarkedString* text = AsString(value)) return *text;
  if (IsUndefined(value)) return MarkedString();
  auto own = [](std::string_view text) { return MarkedString(text, Origin::kTemplate); };
  if (std::holds_alternative<None>(value)) return own("None");
  if (const bool* flag = std::get_if<bool>(&value)) return own(*flag ? "True" : "False");
  if (const int64_t* number = std::get_if<int64_t>(&value)) return own(std::to_string(*number));
  return absl::UnimplementedError(
      absl::StrCat("printing a ", TypeName(value), " is not supported"));
}

StatusOr<bool> Equal(Budget& budget, const Value& a, const Value& b) {
  PAGODA_RETURN_IF_ERROR(budget.Work(1));
  if (auto x = AsInteger(a)) {
    auto y = AsInteger(b);
    return y.has_value() && *x == *y;
  }
  if (a.index() != b.index()) return false;
  if (const MarkedString* text = AsString(a)) {
    PAGODA_RETURN_IF_ERROR(budget.Bytes(text->size()));
    return text->text() == AsString(b)->text();
  }
  if (const List* list = AsList(a)) return EqualLists(budget, *list, *AsList(b));
  if (const Dict* dict = AsDict(a)) return EqualDicts(budget, *dict, *AsDict(b));
  if (const NamespaceRef* ref = std::get_if<NamespaceRef>(&a)) {
    return *ref == std::get<NamespaceRef>(b);
  }
  return true;  // none and undefined equal their like
}

StatusOr<std::vector<Value>> Iterate(Budget& budget, const Value& value) {
  std::vector<Value> items;
  if (const List* list = AsList(value)) {
    PAGODA_RETURN_IF_ERROR(budget.Work(list->items.size()));
    items = list->items;
  } else if (const MarkedString* text = AsString(value)) {
    // A character costs a string of its own.
    PAGODA_RETURN_IF_ERROR(budget.Bytes(64 * text->size()));
    std::vector<size_t> offsets = CharacterOffsets(text->text());
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      items.push_back(MakeString(text->Slice(offsets[i], offsets[i + 1])));
    }
  } else if (const Dict* dict = AsDict(value)) {
    PAGODA_RETURN_IF_ERROR(budget.Work(dict->entries.size()));
    for (const auto& entry : dict->entries) items.emplace_back(entry.first);
  } else if (!IsUndefined(value)) {
    return TypeError("iterating", value);
  }
  return items;
}

StatusOr<bool> Contains(Budget& budget, const Value& haystack, const Value& needle) {
  if (const MarkedString* text = AsString(haystack)) {
    if (IsUndefined(needle)) return UndefinedError(needle);
    const MarkedString* part = AsString(needle);
    if (part == nullptr) return TypeError("searching a str for", needle);
    // std::string::find may compare the needle at many places.
    PAGODA_RETURN_IF_ERROR(budget.Bytes(text->size() * (1 + part->size() / 64)));
    return text->text().find(part->text()) != std::string::npos;
  }
  if (const Dict* dict = AsDict(haystack)) {
    PAGODA_RETURN_IF_ERROR(budget.Work(1 + dict->entries.size()));
    const MarkedString* key = AsString(needle);
    if (key == nullptr) return TypeError("searching a dict for", needle);
    return dict->Find(key->text()) != nullptr;
  }
  if (IsUndefined(haystack)) return false;
  const List* list = AsList(haystack);
  if (list == nullptr) return TypeError("\"in\"", haystack);
  for (const Value& item : list->items) {
    PAGODA_ASSIGN_OR_RETURN(bool equal, Equal(budget, item, needle));
    if (equal) return true;
  }
  return false;
}

Status UndefinedError(const Value& value) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::get<Undefined>(value).what, "\" is undefined"));
}

Status TypeError(std::string_view operation, const Value& value) {
  if (IsUndefined(value)) return UndefinedError(value);
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(operation), " does not work on a value of type ", TypeName(value)));
}

}  // namespace pagoda::text::jinja
