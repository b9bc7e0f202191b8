#include "common/http/service_endpoints.h"

#include <utility>

namespace pagoda::http {

void AddServiceEndpoints(HttpRoutes& routes, ServiceEndpoints endpoints) {
  routes.Add("GET", "/healthz", [](HttpRequest, std::shared_ptr<Responder> responder) {
    responder->Send(TextResponse(200, "ok\n"));
  });
  routes.Add(
      "GET", "/readyz",
      [ready = std::move(endpoints.ready)](HttpRequest, std::shared_ptr<Responder> responder) {
        Status status = ready();
        responder->Send(status.ok() ? TextResponse(200, "ready\n")
                                    : TextResponse(503, std::string(status.message()) + "\n"));
      });
  routes.Add(
      "GET", "/metrics",
      [metrics = std::move(endpoints.metrics)](HttpRequest, std::shared_ptr<Responder> responder) {
        HttpResponse response;
        response.headers = {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}};
        response.body = metrics();
        responder->Send(std::move(response));
      });
}

}  // namespace pagoda::http
