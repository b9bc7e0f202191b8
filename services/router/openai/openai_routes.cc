#include "services/router/openai/openai_routes.h"

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "common/base/logging.h"
#include "services/router/http_status.h"
#include "services/router/openai/completion_call.h"
#include "services/router/openai/request_parser.h"
#include "services/router/openai/response_writer.h"

namespace pagoda::router::openai {
namespace {

constexpr std::string_view kWorkerHeader = "x-pagoda-worker";

// Answers a request that never became a call, and counts it.
void Refuse(RouterCore* core, Api api, const Status& status, http::Responder& responder) {
  core->metrics->CountRequest(ApiName(api), status);
  responder.Send(ToHttpResponse(status));
}

void Complete(RouterCore* core, Api api, const http::HttpRequest& request,
              std::shared_ptr<http::Responder> responder) {
  auto parsed =
      api == Api::kChat ? ParseChatRequest(request.body) : ParseCompletionRequest(request.body);
  if (!parsed.ok()) return Refuse(core, api, parsed.status(), *responder);
  if (auto worker = http::FindHeader(request.headers, kWorkerHeader)) {
    for (auto& prompt : parsed->prompts) prompt.set_worker(std::string(*worker));
  }
  CompletionCall::Start(core, api, *std::move(parsed), std::move(responder));
}

http::HttpHandler CompletionHandler(RouterCore* core, Api api) {
  return [core, api](http::HttpRequest request, std::shared_ptr<http::Responder> responder) {
    auto shared = std::make_shared<http::HttpRequest>(std::move(request));
    Status accepted = core->RunOnTextThread([core, api, shared, responder] {
      // Libraries below may throw (memory); the request pays, not the process.
      try {
        Complete(core, api, *shared, responder);
      } catch (const std::exception& error) {
        Log(LogLevel::kError, "request failed by an exception", {{"what", error.what()}});
        responder->Send(ToHttpResponse(absl::InternalError("the request could not be handled")));
      }
    });
    if (!accepted.ok()) Refuse(core, api, accepted, *responder);
  };
}

std::string WorkersJson(const v1::ListWorkersResponse& list) {
  std::string json = "{\"workers\":[";
  for (int i = 0; i < list.workers_size(); ++i) {
    const auto& worker = list.workers(i);
    auto text = [&](const char* name, std::string_view value) {
      json += std::string(",\"") + name + "\":";
      AppendJsonString(json, value);
    };
    auto number = [&](const char* name, uint64_t value) {
      json += std::string(",\"") + name + "\":" + std::to_string(value);
    };
    json += i > 0 ? ",{\"name\":" : "{\"name\":";
    AppendJsonString(json, worker.name());
    text("state", worker.state());
    text("grpc", worker.grpc_address());
    text("http", worker.http_address());
    number("pid", worker.pid());
    number("running", worker.running());
    number("waiting", worker.waiting());
    number("free_blocks", worker.free_blocks());
    number("total_blocks", worker.total_blocks());
    text("space", worker.space());
    json += "}";
  }
  return json + "]}";
}

}  // namespace

void AddOpenAiRoutes(http::HttpRoutes& routes, RouterCore* core) {
  routes.Add("POST", "/v1/chat/completions", CompletionHandler(core, Api::kChat));
  routes.Add("POST", "/v1/completions", CompletionHandler(core, Api::kCompletions));
  routes.Add(
      "GET", "/v1/models", [core](http::HttpRequest, std::shared_ptr<http::Responder> responder) {
        responder->Send(
            http::JsonResponse(200, ModelsJson(*core->model, core->workers->max_model_len())));
      });
  routes.Add("GET", "/pagoda/v1/workers",
             [core](http::HttpRequest, std::shared_ptr<http::Responder> responder) {
               responder->Send(http::JsonResponse(200, WorkersJson(core->workers->List())));
             });
}

}  // namespace pagoda::router::openai
