#include "services/router/router_metrics.h"

#include <string>

#include "services/router/http_status.h"

namespace pagoda::router {
namespace {

constexpr char kHangsHelp[] = "Times a worker was found frozen (no report) or stuck (no step)";

std::string_view ResultOf(const Status& status) {
  if (status.ok()) return "ok";
  if (absl::IsCancelled(status)) return "cancelled";
  return ToHttpError(status).status < 500 ? "client_error" : "server_error";
}

}  // namespace

RouterMetrics::RouterMetrics(Metrics* metrics)
    : metrics_(metrics),
      retries_(metrics->Counter("router_retries_total",
                                "Attempts on another worker after one had failed")),
      resumes_(metrics->Counter("router_resumes_total",
                                "Attempts that continued an answer which had begun elsewhere")),
      frozen_(metrics->Counter("router_worker_hangs_total", kHangsHelp, {{"state", "frozen"}})),
      stuck_(metrics->Counter("router_worker_hangs_total", kHangsHelp, {{"state", "stuck"}})),
      killers_refused_(metrics->Counter("router_killers_refused_total",
                                        "Requests refused because workers had died of them")) {}

void RouterMetrics::CountRequest(std::string_view api, const Status& status) {
  metrics_
      ->Counter("router_requests_total", "Requests that ended, by API and result",
                {{"api", std::string(api)}, {"result", std::string(ResultOf(status))}})
      .Increment();
}

void RouterMetrics::CountPlacement(const placement::Decision& decision) {
  metrics_
      ->Counter("router_placements_total", "Placement decisions, by worker and reason",
                {{"worker", decision.worker},
                 {"reason", std::string(placement::ReasonName(decision.reason))}})
      .Increment();
}

}  // namespace pagoda::router
