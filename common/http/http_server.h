// An HTTP/1.1 server over a set of routes: keep-alive, pipelining, streamed answers, limits.
//
// It has no TLS and no compression, and knows no paths of its own. Boost.Beast and Asio stay in the
// sources.
//
// Concurrency: Start from one thread; address and Stop from any. Handlers run on the I/O threads.
#ifndef PAGODA_COMMON_HTTP_HTTP_SERVER_H_
#define PAGODA_COMMON_HTTP_HTTP_SERVER_H_

#include <memory>
#include <string>

#include "common/base/metrics.h"
#include "common/base/status.h"
#include "common/http/http_limits.h"
#include "common/http/routes.h"

namespace pagoda::http {

class HttpServer {
 public:
  struct Options {
    std::string address = "127.0.0.1:0";  // HOST:PORT, port 0 = a free one
    int threads = 1;
    HttpLimits limits;
    // When set: http_requests_total{route,code}, http_connections, http_refused_connections_total.
    Metrics* metrics = nullptr;
  };

  // Listens before it returns. Errors: INVALID_ARGUMENT (address), UNAVAILABLE (cannot listen).
  static StatusOr<std::unique_ptr<HttpServer>> Start(const Options& options, HttpRoutes routes);

  virtual ~HttpServer() = default;  // stops

  // HOST:PORT with the port that was bound.
  virtual std::string address() const = 0;

  // Closes the listener and every connection (running answers end as kServerStopping, complete ones
  // are still written for HttpLimits::stop_timeout) and joins the threads. Responders that handlers
  // still hold do nothing from then on. Not from a handler.
  virtual void Stop() = 0;
};

}  // namespace pagoda::http

#endif  // PAGODA_COMMON_HTTP_HTTP_SERVER_H_
