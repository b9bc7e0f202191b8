// Where the builtins are defined, by theme; builtin.h finds them.
//
// Concurrency: constant tables.
#ifndef PAGODA_COMMON_TEXT_JINJA_BUILTIN_TABLES_H_
#define PAGODA_COMMON_TEXT_JINJA_BUILTIN_TABLES_H_

#include <vector>

#include "common/text/jinja/builtin.h"

namespace pagoda::text::jinja {

const std::vector<Builtin>& StringFilters();  // trim, upper, replace ...
const std::vector<Builtin>& ValueFilters();   // length, join, default, tojson ...
const std::vector<Builtin>& StringMethods();  // strip, split, startswith ...
const std::vector<Builtin>& DictMethods();    // get, items, keys, values
const std::vector<Builtin>& Tests();          // defined, none, string ...
const std::vector<Builtin>& Functions();      // raise_exception, range

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_BUILTIN_TABLES_H_
