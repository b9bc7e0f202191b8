// The escapes of a string in a template: Python's, as Jinja2 decodes them.
//
// Concurrency: plain function, no state.
#ifndef PAGODA_COMMON_TEXT_JINJA_STRING_LITERAL_H_
#define PAGODA_COMMON_TEXT_JINJA_STRING_LITERAL_H_

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace pagoda::text::jinja {

// What stands between the quotes, unescaped. An escape that Python does not know stays as written.
// Errors: INVALID_ARGUMENT for a broken escape, UNIMPLEMENTED for names (\N{...}), for surrogates
// and for a backslash before a character that is not ASCII.
StatusOr<std::string> Unescape(std::string_view literal);

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_STRING_LITERAL_H_
