// absl::Status is the error type everywhere inside Pagoda; this header adds what Debian's Abseil
// lacks.
//
// Concurrency: plain functions and macros, no state.
#ifndef PAGODA_COMMON_BASE_STATUS_H_
#define PAGODA_COMMON_BASE_STATUS_H_

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pagoda {

using absl::Status;
using absl::StatusOr;

// The same code with "context: " before the message; OK stays OK. Each layer adds what it knows
// ("shard 2: ...").
Status Annotate(const Status& status, std::string_view context);

}  // namespace pagoda

// Returns from the enclosing function when `expr` (a Status) is not OK.
#define PAGODA_RETURN_IF_ERROR(expr)                                                      \
  do {                                                                                    \
    if (::absl::Status pagoda_status = (expr); !pagoda_status.ok()) return pagoda_status; \
  } while (false)

#define PAGODA_CONCAT_INNER(a, b) a##b
#define PAGODA_CONCAT(a, b) PAGODA_CONCAT_INNER(a, b)

// PAGODA_ASSIGN_OR_RETURN(auto x, F()): assigns the value of a StatusOr, or returns its error.
#define PAGODA_ASSIGN_OR_RETURN(lhs, expr) \
  PAGODA_ASSIGN_OR_RETURN_INNER(PAGODA_CONCAT(pagoda_result_, __LINE__), lhs, expr)
#define PAGODA_ASSIGN_OR_RETURN_INNER(result, lhs, expr) \
  auto result = (expr);                                  \
  if (!result.ok()) return result.status();              \
  lhs = std::move(*result)

#endif  // PAGODA_COMMON_BASE_STATUS_H_
