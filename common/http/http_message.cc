#include "common/http/http_message.h"

#include <strings.h>

#include "common/base/logging.h"

namespace pagoda::http {
namespace {

struct ErrorKind {
  int status;
  std::string_view type;
  std::string_view code;
};

// The types are those of the OpenAI API where it has one.
constexpr ErrorKind kErrorKinds[] = {
    {400, "invalid_request_error", "invalid_value"},
    {401, "authentication_error", "invalid_api_key"},
    {403, "permission_error", "forbidden"},
    {404, "invalid_request_error", "not_found"},
    {405, "invalid_request_error", "method_not_allowed"},
    {408, "invalid_request_error", "request_timeout"},
    {413, "invalid_request_error", "request_too_large"},
    {429, "rate_limit_error", "overloaded"},
    {431, "invalid_request_error", "headers_too_large"},
    {499, "invalid_request_error", "cancelled"},
    {501, "invalid_request_error", "not_implemented"},
    {503, "service_unavailable", "unavailable"},
    {504, "timeout_error", "deadline_exceeded"},
};

ErrorKind KindOf(int status) {
  for (const ErrorKind& kind : kErrorKinds) {
    if (kind.status == status) return kind;
  }
  if (status < 500) return {status, "invalid_request_error", "bad_request"};
  return {status, "server_error", "internal_error"};
}

}  // namespace

std::optional<std::string_view> FindHeader(const HttpHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key.size() == name.size() && strncasecmp(key.data(), name.data(), name.size()) == 0) {
      return value;
    }
  }
  return std::nullopt;
}

HttpResponse JsonResponse(int status, std::string body) {
  return {status, {{"Content-Type", "application/json"}}, std::move(body)};
}

HttpResponse TextResponse(int status, std::string body) {
  return {status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(body)};
}

std::string ErrorJson(const HttpError& error) {
  ErrorKind kind = KindOf(error.status);
  std::string json = "{\"error\":{\"message\":";
  AppendJsonString(json, error.message);
  json += ",\"type\":";
  AppendJsonString(json, kind.type);
  json += ",\"param\":";
  if (error.param.empty()) {
    json += "null";
  } else {
    AppendJsonString(json, error.param);
  }
  json += ",\"code\":";
  AppendJsonString(json, error.code.empty() ? kind.code : std::string_view(error.code));
  json += "}}";
  return json;
}

HttpResponse ErrorResponse(const HttpError& error) {
  return JsonResponse(error.status, ErrorJson(error));
}

}  // namespace pagoda::http
