#include "services/router/attempt_error.h"

#include <string>

#include "services/router/field_error.h"

namespace pagoda::router {

Status PublicError(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kFailedPrecondition:  // another worker has come to its address
      return absl::UnavailableError("the worker went away or takes no requests");
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return absl::InternalError("the worker failed");
    case absl::StatusCode::kDataLoss:
      return absl::InternalError("the worker failed: the tokens so far may be wrong");
    case absl::StatusCode::kDeadlineExceeded:
      return absl::DeadlineExceededError("the request's deadline passed");
    case absl::StatusCode::kCancelled:
      return absl::CancelledError("cancelled");
    default:
      return status;
  }
}

Status PlacementError(const Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return InvalidField("worker", std::string(status.message()));
}

bool Retryable(const Status& status, bool continues) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:  // of this worker's KV pool; another's may be larger
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kAborted:
      return true;
    case absl::StatusCode::kDataLoss:
      return !continues;
    default:
      return false;
  }
}

}  // namespace pagoda::router
