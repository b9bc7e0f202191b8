#include "common/http/routes.h"

#include <utility>

namespace pagoda::http {

void HttpRoutes::Add(std::string method, std::string path, HttpHandler handler) {
  handlers_[std::move(path)].emplace(std::move(method), std::move(handler));
}

void HttpRoutes::Dispatch(HttpRequest request, std::shared_ptr<Responder> responder) const {
  auto path = handlers_.find(request.path);
  if (path == handlers_.end()) {
    responder->Send(ErrorResponse({.status = 404, .message = "no such path: " + request.path}));
    return;
  }
  auto method = path->second.find(request.method == "HEAD" ? "GET" : request.method);
  if (method == path->second.end()) {
    std::string allow;
    for (const auto& [name, handler] : path->second) allow += (allow.empty() ? "" : ", ") + name;
    HttpResponse response =
        ErrorResponse({.status = 405,
                       .message = "method " + request.method + " is not allowed for " +
                                  request.path + "; allowed: " + allow});
    response.headers.emplace_back("Allow", allow);
    responder->Send(std::move(response));
    return;
  }
  method->second(std::move(request), std::move(responder));
}

std::string_view HttpRoutes::Label(std::string_view path) const {
  auto found = handlers_.find(path);
  return found == handlers_.end() ? std::string_view("other") : std::string_view(found->first);
}

}  // namespace pagoda::http
