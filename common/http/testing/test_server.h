// An HTTP server on a free loopback port with a few routes that tests of common/http share.
//
//   GET  /hello   "hello\n"
//   POST /echo    the request's body
//   GET  /held    answered (or not) by the test through TakeHeld
//
// Concurrency: one test thread beside the server's own.
#ifndef PAGODA_COMMON_HTTP_TESTING_TEST_SERVER_H_
#define PAGODA_COMMON_HTTP_TESTING_TEST_SERVER_H_

#include <memory>
#include <string>
#include <utility>

#include "common/base/bounded_queue.h"
#include "common/base/metrics.h"
#include "common/http/http_server.h"

namespace pagoda::http {

class TestServer {
 public:
  explicit TestServer(HttpLimits limits = {}) {
    HttpRoutes routes;
    routes.Add("GET", "/hello", [](HttpRequest, std::shared_ptr<Responder> responder) {
      responder->Send(TextResponse(200, "hello\n"));
    });
    routes.Add("POST", "/echo", [](HttpRequest request, std::shared_ptr<Responder> responder) {
      responder->Send(TextResponse(200, std::move(request.body)));
    });
    routes.Add("GET", "/held", [this](HttpRequest, std::shared_ptr<Responder> responder) {
      responder->OnClose([this](CloseReason reason) { closed_.TryPush(std::move(reason)); });
      held_.TryPush(std::move(responder));
    });
    HttpServer::Options options;
    options.threads = 2;
    options.limits = limits;
    options.metrics = &metrics_;
    server_ = std::move(*HttpServer::Start(options, std::move(routes)));
  }

  std::string address() const { return server_->address(); }
  HttpServer& server() { return *server_; }
  std::string metrics() { return metrics_.Render(); }

  // The next request to /held, or null after 20 s.
  std::shared_ptr<Responder> TakeHeld() {
    auto responder = held_.PopUntil(Deadline());
    return responder ? *responder : nullptr;
  }
  // Why the next held answer's connection ended; nothing after 20 s.
  std::optional<CloseReason> TakeClosed() { return closed_.PopUntil(Deadline()); }

  static TimePoint Deadline() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(20);
  }

 private:
  Metrics metrics_;
  BoundedQueue<std::shared_ptr<Responder>> held_{1000};
  BoundedQueue<CloseReason> closed_{1000};
  std::unique_ptr<HttpServer> server_;
};

}  // namespace pagoda::http

#endif  // PAGODA_COMMON_HTTP_TESTING_TEST_SERVER_H_
