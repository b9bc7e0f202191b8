// Template source to statements.
//
// Concurrency: plain function, no state.
#ifndef PAGODA_COMMON_TEXT_JINJA_PARSER_H_
#define PAGODA_COMMON_TEXT_JINJA_PARSER_H_

#include <string_view>

#include "common/base/status.h"
#include "common/text/jinja/ast.h"

namespace pagoda::text::jinja {

// Statements: for (with a condition, with else), if, set (also of a namespace's attribute, also as
// a block), break, continue, generation. Errors, with the line: UNIMPLEMENTED naming a statement,
// filter, test, method, function or form that is not known; INVALID_ARGUMENT for a syntax error.
StatusOr<Body> ParseTemplate(std::string_view source);

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_PARSER_H_
