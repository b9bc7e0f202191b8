// The filters, tests, methods and functions that templates may use: one table each, looked up when
// a template is parsed, so that an unknown name is refused before anything is rendered.
//
// Concurrency: constant tables, pure functions.
#ifndef PAGODA_COMMON_TEXT_JINJA_BUILTIN_H_
#define PAGODA_COMMON_TEXT_JINJA_BUILTIN_H_

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/text/jinja/budget.h"
#include "common/text/jinja/value.h"

namespace pagoda::text::jinja {

// By parameter; one that was not given has no value. The first parameter of a filter, test or
// method is what it is applied to.
using Arguments = std::span<const std::optional<Value>>;

struct Builtin {
  std::string_view name;
  std::vector<std::string_view> parameters;  // names that keywords may use
  size_t required;                           // how many of them must be given
  StatusOr<Value> (*apply)(Budget& budget, Arguments arguments);
};

// nullptr: there is none of that name.
const Builtin* FindFilter(std::string_view name);
const Builtin* FindTest(std::string_view name);
const Builtin* FindMethod(std::string_view name);
const Builtin* FindFunction(std::string_view name);

// Names that Jinja2 or `transformers` define for every template as functions. Those that
// FindFunction does not know are refused wherever they appear.
bool IsGlobalFunction(std::string_view name);

// Attributes that Python's own types have: using one without a call would give a method object.
bool IsPythonAttribute(const Value& value, std::string_view name);

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_BUILTIN_H_
