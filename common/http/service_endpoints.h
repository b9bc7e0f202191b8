// The three paths that every service has: /healthz, /readyz and /metrics.
//
// Concurrency: the callbacks run on I/O threads, several at a time, and must not block.
#ifndef PAGODA_COMMON_HTTP_SERVICE_ENDPOINTS_H_
#define PAGODA_COMMON_HTTP_SERVICE_ENDPOINTS_H_

#include <functional>
#include <string>

#include "common/base/status.h"
#include "common/http/routes.h"

namespace pagoda::http {

struct ServiceEndpoints {
  std::function<Status()> ready;         // OK: /readyz answers 200; else 503 with the message
  std::function<std::string()> metrics;  // the Prometheus text format (Metrics::Render)
};

// /healthz answers 200 while the process can answer at all: it depends on no peer.
void AddServiceEndpoints(HttpRoutes& routes, ServiceEndpoints endpoints);

}  // namespace pagoda::http

#endif  // PAGODA_COMMON_HTTP_SERVICE_ENDPOINTS_H_
