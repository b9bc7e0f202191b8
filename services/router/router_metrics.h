// The router's own metrics (names without the "pagoda:" prefix).
//
//   router_requests_total{api,result}       api: chat, completions, grpc; result: ok, client_error,
//                                           server_error, cancelled
//   router_retries_total                    attempts on another worker
//   router_resumes_total                    of those, continuing an answer that had begun
//   router_worker_hangs_total{state}        workers found frozen or stuck
//   router_killers_refused_total            requests refused because workers died of them
//   router_placements_total{worker,reason}  decisions by worker and reason
//
// Concurrency: any thread.
#ifndef PAGODA_SERVICES_ROUTER_ROUTER_METRICS_H_
#define PAGODA_SERVICES_ROUTER_ROUTER_METRICS_H_

#include <string_view>

#include "common/base/metrics.h"
#include "common/base/status.h"
#include "common/placement/policy.h"
#include "services/router/worker_health.h"

namespace pagoda::router {

class RouterMetrics {
 public:
  explicit RouterMetrics(Metrics* metrics);

  void CountRequest(std::string_view api, const Status& status);
  void CountRetry() { retries_.Increment(); }
  void CountResume() { resumes_.Increment(); }
  void CountHang(Hang hang) { (hang == Hang::kFrozen ? frozen_ : stuck_).Increment(); }
  void CountKillerRefused() { killers_refused_.Increment(); }
  void CountPlacement(const placement::Decision& decision);

 private:
  Metrics* const metrics_;
  prometheus::Counter& retries_;
  prometheus::Counter& resumes_;
  prometheus::Counter& frozen_;
  prometheus::Counter& stuck_;
  prometheus::Counter& killers_refused_;
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_ROUTER_METRICS_H_
