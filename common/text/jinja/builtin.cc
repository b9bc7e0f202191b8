#include "common/text/jinja/builtin.h"

#include <algorithm>
#include <array>

#include "common/text/jinja/builtin_tables.h"

namespace pagoda::text::jinja {
namespace {

const Builtin* FindIn(const std::vector<Builtin>& table, std::string_view name) {
  for (const Builtin& builtin : table) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

constexpr std::array<std::string_view, 8> kGlobalFunctions = {
    "cycler", "dict", "joiner", "lipsum", "namespace", "raise_exception", "range", "strftime_now"};

constexpr std::string_view kStringAttributes[] = {
    "capitalize",   "casefold",    "center",    "count",      "encode",       "endswith",
    "expandtabs",   "find",        "format",    "format_map", "index",        "isalnum",
    "isalpha",      "isascii",     "isdecimal", "isdigit",    "isidentifier", "islower",
    "isnumeric",    "isprintable", "isspace",   "istitle",    "isupper",      "join",
    "ljust",        "lower",       "lstrip",    "maketrans",  "partition",    "removeprefix",
    "removesuffix", "replace",     "rfind",     "rindex",     "rjust",        "rpartition",
    "rsplit",       "rstrip",      "split",     "splitlines", "startswith",   "strip",
    "swapcase",     "title",       "translate", "upper",      "zfill"};
constexpr std::string_view kListAttributes[] = {
    "append",  "clear", "copy",   "count",   "extend", "index", "insert", "isdisjoint",
    "mapping", "pop",   "remove", "reverse", "sort",   "start", "step",   "stop"};
constexpr std::string_view kDictAttributes[] = {"clear",      "copy",   "fromkeys", "get",
                                                "items",      "keys",   "pop",      "popitem",
                                                "setdefault", "update", "values"};
constexpr std::string_view kIntegerAttributes[] = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
    "from_bytes",       "imag",      "numerator",  "real",      "to_bytes"};

}  // namespace

const Builtin* FindFilter(std::string_view name) {
  const Builtin* found = FindIn(StringFilters(), name);
  return found != nullptr ? found : FindIn(ValueFilters(), name);
}

const Builtin* FindTest(std::string_view name) { return FindIn(Tests(), name); }

const Builtin* FindMethod(std::string_view name) {
  const Builtin* found = FindIn(StringMethods(), name);
  return found != nullptr ? found : FindIn(DictMethods(), name);
}

const Builtin* FindFunction(std::string_view name) { return FindIn(Functions(), name); }

bool IsGlobalFunction(std::string_view name) {
  return std::find(kGlobalFunctions.begin(), kGlobalFunctions.end(), name) !=
         kGlobalFunctions.end();
}

bool IsPythonAttribute(const Value& value, std::string_view name) {
  std::span<const std::string_view> names;
  if (AsString(value) != nullptr) names = kStringAttributes;
  if (AsList(value) != nullptr) names = kListAttributes;
  if (AsDict(value) != nullptr) names = kDictAttributes;
  if (AsInteger(value).has_value()) names = kIntegerAttributes;
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace pagoda::text::jinja
