// The process's Prometheus metrics. Every name starts with "pagoda:" (added here).
//
// A component asks for its metrics once, when it is made, and keeps the references, which stay
// valid as long as the Metrics object. Asking again with equal names and labels gives the same
// object.
//
// Concurrency: every method, and every metric returned, may be used from any thread.
#ifndef PAGODA_COMMON_BASE_METRICS_H_
#define PAGODA_COMMON_BASE_METRICS_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"

namespace prometheus {
class Registry;
}

namespace pagoda {

class Metrics {
 public:
  using Labels = std::map<std::string, std::string>;

  Metrics();
  ~Metrics();

  prometheus::Counter& Counter(std::string_view name, std::string_view help, Labels labels = {});
  prometheus::Gauge& Gauge(std::string_view name, std::string_view help, Labels labels = {});
  // `buckets`: ascending upper bounds.
  prometheus::Histogram& Histogram(std::string_view name, std::string_view help,
                                   const std::vector<double>& buckets, Labels labels = {});

  // Adds pagoda:build_info and the process metrics (resident memory, CPU, threads, descriptors),
  // which are read at each Render.
  void AddProcessMetrics(std::string_view service, std::string_view version);

  // The Prometheus text format, version 0.0.4.
  std::string Render();

  // Seconds from 0.1 ms to 100 s, five to a decade: latencies of requests, steps and transfers.
  static const std::vector<double>& LatencyBuckets();

 private:
  void UpdateProcessMetrics();

  std::unique_ptr<prometheus::Registry> registry_;
  bool process_metrics_ = false;
};

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_METRICS_H_
