// A small blocking HTTP/1.1 client for our own command-line tools and tests: one connection a call.
//
// It has no TLS, no redirects and no pooling.
//
// Concurrency: a const object; calls from several threads do not share anything.
#ifndef PAGODA_COMMON_HTTP_HTTP_CLIENT_H_
#define PAGODA_COMMON_HTTP_HTTP_CLIENT_H_

#include <functional>
#include <string>
#include <string_view>

#include "common/base/address.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/http/http_message.h"

namespace pagoda::http {

class HttpClient {
 public:
  // "http://127.0.0.1:8080" or "127.0.0.1:8080". Errors: INVALID_ARGUMENT.
  static StatusOr<HttpClient> Create(std::string_view url);

  // Any status the server sends is an answer, not an error. Errors: UNAVAILABLE (no connection, or
  // it broke), DEADLINE_EXCEEDED, INVALID_ARGUMENT (what came is not HTTP).
  StatusOr<HttpResponse> Get(std::string_view path, TimePoint deadline) const;
  StatusOr<HttpResponse> Post(std::string_view path, std::string body, TimePoint deadline,
                              HttpHeaders headers = {}) const;

  // The body of a 200 goes to `on_line` line by line as it arrives (without line ends) and is empty
  // in the result; another status is returned whole. `on_line` returns false to drop the
  // connection, which ends the call with CANCELLED.
  StatusOr<HttpResponse> PostStream(std::string_view path, std::string body, TimePoint deadline,
                                    HttpHeaders headers,
                                    std::function<bool(std::string_view)> on_line) const;

 private:
  explicit HttpClient(HostPort server) : server_(std::move(server)) {}

  StatusOr<HttpResponse> Call(std::string_view method, std::string_view path, std::string body,
                              TimePoint deadline, const HttpHeaders& headers,
                              const std::function<bool(std::string_view)>& on_line) const;

  HostPort server_;
};

}  // namespace pagoda::http

#endif  // PAGODA_COMMON_HTTP_HTTP_CLIENT_H_
