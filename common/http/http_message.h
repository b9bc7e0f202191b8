// An HTTP request as a handler sees it, and a whole response.
//
// Nothing here parses or writes HTTP: the server's session and exchange do.
//
// Concurrency: plain values.
#ifndef PAGODA_COMMON_HTTP_HTTP_MESSAGE_H_
#define PAGODA_COMMON_HTTP_HTTP_MESSAGE_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pagoda::http {

// In the order received or to be sent; names compare without case.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The first value of header `name`, or nothing.
std::optional<std::string_view> FindHeader(const HttpHeaders& headers, std::string_view name);

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // the target before '?', not decoded
  std::string query;   // the target after '?', not decoded
  HttpHeaders headers;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers;  // besides Content-Length and Connection, which the server writes
  std::string body;
};

HttpResponse JsonResponse(int status, std::string body);
HttpResponse TextResponse(int status, std::string body);

// An error in the form that OpenAI clients expect: {"error":{"message","type","param","code"}}.
// `type` and `code` default to what the status means; an empty `param` becomes null.
struct HttpError {
  int status = 500;
  std::string message;
  std::string param = {};
  std::string code = {};
};
HttpResponse ErrorResponse(const HttpError& error);

// The same object as text, for errors inside a stream that has already begun.
std::string ErrorJson(const HttpError& error);

}  // namespace pagoda::http

#endif  // PAGODA_COMMON_HTTP_HTTP_MESSAGE_H_
