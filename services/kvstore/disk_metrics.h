// What the disk tier counts.
//
// Concurrency: every metric may be moved from any thread.
#ifndef PAGODA_SERVICES_KVSTORE_DISK_METRICS_H_
#define PAGODA_SERVICES_KVSTORE_DISK_METRICS_H_

#include "services/kvstore/tier_metrics.h"

namespace pagoda::kvstore {

struct DiskMetrics : TierMetrics {
  explicit DiskMetrics(Metrics& metrics)
      : TierMetrics(metrics, "disk"),
        up(metrics.Gauge("kvstore_disk_up", "1 while the disk tier takes blocks, else 0")),
        read_errors(Errors(metrics, "read")),
        write_errors(Errors(metrics, "write")),
        discarded(metrics.Counter(
            "kvstore_disk_discarded_total",
            "Folders of the data directory that could not be read and were moved aside")) {}

  prometheus::Gauge& up;
  prometheus::Counter& read_errors;
  prometheus::Counter& write_errors;
  prometheus::Counter& discarded;

 private:
  static prometheus::Counter& Errors(Metrics& metrics, const char* op) {
    return metrics.Counter("kvstore_disk_errors_total",
                           "Reads and writes that the disk or its file system refused",
                           {{"op", op}});
  }
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_DISK_METRICS_H_
