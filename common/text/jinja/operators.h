// Python's operators on values: arithmetic, order, slices.
//
// Concurrency: plain functions, no state.
#ifndef PAGODA_COMMON_TEXT_JINJA_OPERATORS_H_
#define PAGODA_COMMON_TEXT_JINJA_OPERATORS_H_

#include "common/base/status.h"
#include "common/text/jinja/ast.h"
#include "common/text/jinja/budget.h"
#include "common/text/jinja/value.h"

namespace pagoda::text::jinja {

// + - * // %, integers of 64 bits; + also joins strings and lists. Errors: INVALID_ARGUMENT where
// Python raises, and for what 64 bits cannot hold; UNIMPLEMENTED for other uses that Python allows.
StatusOr<Value> Arithmetic(Budget& budget, Operator op, const Value& left, const Value& right);

// == != < <= > >= in, not in.
StatusOr<bool> Comparison(Budget& budget, Operator op, const Value& left, const Value& right);

// sequence[start:stop:step] of a string or list; none = absent.
StatusOr<Value> SliceOf(Budget& budget, const Value& sequence, const Value& start,
                        const Value& stop, const Value& step);

// sequence[index] of a string or list; undefined outside.
StatusOr<Value> ItemAt(Budget& budget, const Value& sequence, int64_t index);

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_OPERATORS_H_
