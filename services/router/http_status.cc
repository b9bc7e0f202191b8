#include "services/router/http_status.h"

#include "services/router/field_error.h"

namespace pagoda::router {
namespace {

int HttpCode(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      // A parameter that is not built is the client's to leave out; a 5xx would be retried.
      return ErrorField(status).empty() ? 501 : 400;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

}  // namespace

http::HttpError ToHttpError(const Status& status) {
  return {.status = HttpCode(status),
          .message = std::string(status.message()),
          .param = ErrorField(status),
          .code = ErrorCode(status)};
}

http::HttpResponse ToHttpResponse(const Status& status) {
  http::HttpError error = ToHttpError(status);
  http::HttpResponse response = http::ErrorResponse(error);
  if (error.status == 429 || error.status == 503) {
    response.headers.emplace_back("Retry-After", "1");
  }
  return response;
}

}  // namespace pagoda::router
