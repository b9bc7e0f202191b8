// Filters and methods of strings. Every result keeps the marks of the characters it is made of.
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/text/jinja/builtin_tables.h"
#include "common/text/jinja/python_text.h"

namespace pagoda::text::jinja {
namespace {

enum class Side : uint8_t { kBoth, kLeft, kRight };

// What the method is called on.
StatusOr<const MarkedString*> Self(Budget& budget, Arguments arguments, std::string_view method) {
  const MarkedString* text = AsString(*arguments[0]);
  if (text == nullptr)
    return TypeError(absl::StrCat("\"", std::string(method), "\""), *arguments[0]);
  PAGODA_RETURN_IF_ERROR(budget.Bytes(text->size()));
  return text;
}

StatusOr<const MarkedString*> StringArgument(const std::optional<Value>& argument,
                                             std::string_view operation) {
  const MarkedString* text = AsString(*argument);
  if (text == nullptr) return TypeError(operation, *argument);
  return text;
}

bool Given(const std::optional<Value>& argument) {
  return argument.has_value() && !std::holds_alternative<None>(*argument);
}

// The length of the character at `at` if `characters` (white space when null) has it, or 0.
size_t StripLength(std::string_view text, size_t at, const MarkedString* characters) {
  if (characters == nullptr) return SpaceLength(text, at);
  size_t length = 1;
  while (at + length < text.size() &&
         (static_cast<unsigned char>(text[at + length]) & 0xC0) == 0x80) {
    ++length;
  }
  bool found = characters->text().find(text.substr(at, length)) != std::string::npos;
  return found ? length : 0;
}

StatusOr<Value> StripText(Budget& budget, const MarkedString& string,
                          const MarkedString* characters, Side side) {
  std::string_view text = string.text();
  PAGODA_RETURN_IF_ERROR(
      budget.Bytes(text.size() * (1 + (characters == nullptr ? 0 : characters->size()))));
  size_t begin = 0;
  size_t end = text.size();
  if (side != Side::kRight) {
    while (begin < end) {
      size_t length = StripLength(text, begin, characters);
      if (length == 0) break;
      begin += length;
    }
  }
  if (side != Side::kLeft) {
    while (begin < end) {
      size_t last = end - 1;
      while (last > begin && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
      if (StripLength(text, last, characters) == 0) break;
      end = last;
    }
  }
  return MakeString(string.Slice(begin, end));
}

template <Side side>
StatusOr<Value> StripMethod(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(const MarkedString* text, Self(budget, arguments, "strip"));
  const MarkedString* characters = nullptr;
  if (Given(arguments[1])) {
    PAGODA_ASSIGN_OR_RETURN(characters, StringArgument(arguments[1], "\"strip\""));
  }
  return StripText(budget, *text, characters, side);
}

StatusOr<Value> TrimFilter(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(MarkedString text, ToText(*arguments[0]));
  const MarkedString* characters = nullptr;
  if (Given(arguments[1])) {
    PAGODA_ASSIGN_OR_RETURN(characters, StringArgument(arguments[1], "\"trim\""));
  }
  return StripText(budget, text, characters, Side::kBoth);
}

enum class Case : uint8_t { kUpper, kLower, kCapital };

// Beyond ASCII, Python's mappings change lengths and depend on neighbours: refused, not
// approximated.
StatusOr<Value> ChangeCase(MarkedString text, Case to) {
  if (!IsAscii(text.text())) {
    return absl::UnimplementedError(
        "changing the case of characters that are not ASCII is not supported");
  }
  bool first = true;
  text.TransformBytes([&](char byte) {
    bool upper = to == Case::kUpper || (to == Case::kCapital && first);
    first = false;
    auto code = static_cast<unsigned char>(byte);
    return upper ? absl::ascii_toupper(code) : absl::ascii_tolower(code);
  });
  return MakeString(std::move(text));
}

template <Case to>
StatusOr<Value> CaseFilter(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(MarkedString text, ToText(*arguments[0]));
  PAGODA_RETURN_IF_ERROR(budget.Bytes(text.size()));
  return ChangeCase(std::move(text), to);
}

template <Case to>
StatusOr<Value> CaseMethod(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(const MarkedString* text, Self(budget, arguments, "upper or lower"));
  return ChangeCase(*text, to);
}

StatusOr<Value> ReplaceText(Budget& budget, const MarkedString& string, const MarkedString& from,
                            const MarkedString& to, const std::optional<Value>& count) {
  if (from.empty()) return absl::UnimplementedError("replacing an empty str is not supported");
  int64_t left = -1;
  if (Given(count)) {
    auto number = AsInteger(*count);
    if (!number.has_value()) return TypeError("the count of \"replace\"", *count);
    left = *number;
  }
  PAGODA_RETURN_IF_ERROR(budget.Bytes(string.size() * (1 + from.size() / 64)));
  MarkedString out;
  size_t at = 0;
  for (; left != 0; --left) {
    size_t found = string.text().find(from.text(), at);
    if (found == std::string::npos) break;
    PAGODA_RETURN_IF_ERROR(budget.Bytes(to.size()));
    out.AppendRange(string, at, found);
    out.Append(to);
    at = found + from.size();
  }
  out.AppendRange(string, at, string.size());
  return MakeString(std::move(out));
}

StatusOr<Value> ReplaceMethod(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(const MarkedString* text, Self(budget, arguments, "replace"));
  PAGODA_ASSIGN_OR_RETURN(const MarkedString* from, StringArgument(arguments[1], "\"replace\""));
  PAGODA_ASSIGN_OR_RETURN(const MarkedString* to, StringArgument(arguments[2], "\"replace\""));
  return ReplaceText(budget, *text, *from, *to, arguments[3]);
}

StatusOr<Value> ReplaceFilter(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(MarkedString text, ToText(*arguments[0]));
  PAGODA_ASSIGN_OR_RETURN(MarkedString from, ToText(*arguments[1]));
  PAGODA_ASSIGN_OR_RETURN(MarkedString to, ToText(*arguments[2]));
  return ReplaceText(budget, text, from, to, arguments[3]);
}

// startswith and endswith: one str or a tuple of them.
template <bool at_start>
StatusOr<Value> AffixMethod(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(const MarkedString* text, Self(budget, arguments, "startswith"));
  auto matches = [&](const MarkedString& affix) {
    return at_start ? text->text().starts_with(affix.text()) : text->text().ends_with(affix.text());
  };
  const List* tuple = AsList(*arguments[1]);
  if (tuple == nullptr || tuple->kind != ListKind::kTuple) {
    PAGODA_ASSIGN_OR_RETURN(const MarkedString* affix,
                            StringArgument(arguments[1], "\"startswith\" or \"endswith\""));
    return Value(matches(*affix));
  }
  for (const Value& item : tuple->items) {
    const MarkedString* affix = AsString(item);
    if (affix == nullptr) return TypeError("\"startswith\" or \"endswith\"", item);
    PAGODA_RETURN_IF_ERROR(budget.Bytes(affix->size()));
    if (matches(*affix)) return Value(true);
  }
  return Value(false);
}

// At white space: empty parts vanish.
void SplitAtSpace(const MarkedString& string, int64_t left, std::vector<Value>& parts) {
  std::string_view text = string.text();
  for (size_t at = SkipSpace(text, 0); at < text.size(); at = SkipSpace(text, at)) {
    size_t end = at;
    if (left-- == 0) {
      end = text.size();
    } else {
      while (end < text.size() && SpaceLength(text, end) == 0) ++end;
    }
    parts.push_back(MakeString(string.Slice(at, end)));
    at = end;
  }
}

StatusOr<Value> SplitMethod(Budget& budget, Arguments arguments) {
  PAGODA_ASSIGN_OR_RETURN(const MarkedString* text, Self(budget, arguments, "split"));
  int64_t left = -1;
  if (arguments[2].has_value()) {
    auto number = AsInteger(*arguments[2]);
    if (!number.has_value()) return TypeError("the limit of \"split\"", *arguments[2]);
    left = *number;
  }
  std::vector<Value> parts;
  // A part costs a string of its own.
  PAGODA_RETURN_IF_ERROR(budget.Bytes(32 * text->size()));
  if (!Given(arguments[1])) {
    SplitAtSpace(*text, left, parts);
    return MakeList(std::move(parts), ListKind::kList);
  }
  PAGODA_ASSIGN_OR_RETURN(const MarkedString* separator, StringArgument(arguments[1], "\"split\""));
  if (separator->empty()) return absl::InvalidArgumentError("\"split\" at an empty str");
  PAGODA_RETURN_IF_ERROR(budget.Bytes(text->size() * (1 + separator->size() / 64)));
  size_t at = 0;
  for (; left != 0; --left) {
    size_t found = text->text().find(separator->text(), at);
    if (found == std::string::npos) break;
    parts.push_back(MakeString(text->Slice(at, found)));
    at = found + separator->size();
  }
  parts.push_back(MakeString(text->Slice(at, text->size())));
  return MakeList(std::move(parts), ListKind::kList);
}

}  // namespace

const std::vector<Builtin>& StringFilters() {
  static const std::vector<Builtin> table = {
      {"trim", {"value", "chars"}, 1, TrimFilter},
      {"upper", {"s"}, 1, CaseFilter<Case::kUpper>},
      {"lower", {"s"}, 1, CaseFilter<Case::kLower>},
      {"capitalize", {"s"}, 1, CaseFilter<Case::kCapital>},
      {"replace", {"s", "old", "new", "count"}, 3, ReplaceFilter},
  };
  return table;
}

const std::vector<Builtin>& StringMethods() {
  // Python takes these arguments by position only (but for split's): names no keyword can spell.
  static const std::vector<Builtin> table = {
      {"strip", {"", ""}, 1, StripMethod<Side::kBoth>},
      {"lstrip", {"", ""}, 1, StripMethod<Side::kLeft>},
      {"rstrip", {"", ""}, 1, StripMethod<Side::kRight>},
      {"upper", {""}, 1, CaseMethod<Case::kUpper>},
      {"lower", {""}, 1, CaseMethod<Case::kLower>},
      {"capitalize", {""}, 1, CaseMethod<Case::kCapital>},
      {"replace", {"", "", "", ""}, 3, ReplaceMethod},
      {"startswith", {"", ""}, 2, AffixMethod<true>},
      {"endswith", {"", ""}, 2, AffixMethod<false>},
      {"split", {"", "sep", "maxsplit"}, 1, SplitMethod},
  };
  return table;
}

}  // namespace pagoda::text::jinja
