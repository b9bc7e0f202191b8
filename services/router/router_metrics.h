// The router's own metrics (names without the "pagoda:" prefix).
//
//   router_requests_total{api,result}       api: chat, completions, grpc; result: ok, client_error,
//                                           server_error, cancelled
//   router_retries_total                    attempts on another worker
//   router_placements_total{worker,reason}  decisions by worker and reason
//
// Concurrency: any thread.
#ifndef PAGODA_SERVICES_ROUTER_ROUTER_METRICS_H_
#define PAGODA_SERVICES_ROUTER_ROUTER_METRICS_H_

#include <string_view>

#include "common/base/metrics.h"
#include "common/base/status.h"
#include "common/placement/policy.h"

namespace pagoda::router {

class RouterMetrics {
 public:
  explicit RouterMetrics(Metrics* metrics);

  void CountRequest(std::string_view api, const Status& status);
  void CountRetry() { retries_.Increment(); }
  void CountPlacement(const placement::Decision& decision);

 private:
  Metrics* const metrics_;
  prometheus::Counter& retries_;
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_ROUTER_METRICS_H_
