// Which handler answers a method and a path. Paths match exactly; the rest gets 404 or 405 as JSON.
//
// Concurrency: Add while it is built, then Dispatch from any thread.
#ifndef PAGODA_COMMON_HTTP_ROUTES_H_
#define PAGODA_COMMON_HTTP_ROUTES_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/http/responder.h"

namespace pagoda::http {

// Runs on an I/O thread and must not block: long work goes elsewhere and keeps the responder.
using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<Responder>)>;

class HttpRoutes {
 public:
  // REQUIRES: no handler for this method and path yet. A GET handler also answers HEAD.
  void Add(std::string method, std::string path, HttpHandler handler);

  void Dispatch(HttpRequest request, std::shared_ptr<Responder> responder) const;

  // `path` if it is a route, else "other": a metric label that clients cannot multiply.
  std::string_view Label(std::string_view path) const;

 private:
  // path -> method -> handler
  std::map<std::string, std::map<std::string, HttpHandler>, std::less<>> handlers_;
};

}  // namespace pagoda::http

#endif  // PAGODA_COMMON_HTTP_ROUTES_H_
