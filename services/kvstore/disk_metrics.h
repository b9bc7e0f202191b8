// What the disk tier counts.
//
// Concurrency: every metric may be moved from any thread.
#ifndef PAGODA_SERVICES_KVSTORE_DISK_METRICS_H_
#define PAGODA_SERVICES_KVSTORE_DISK_METRICS_H_

#include "common/base/metrics.h"

namespace pagoda::kvstore {

struct DiskMetrics {
  explicit DiskMetrics(Metrics& metrics)
      : bytes(metrics.Gauge("kvstore_bytes", "Bytes of blocks held", {{"tier", "disk"}})),
        blocks(metrics.Gauge("kvstore_blocks", "Blocks held", {{"tier", "disk"}})),
        up(metrics.Gauge("kvstore_disk_up", "1 while the disk tier takes blocks, else 0")),
        read_errors(Errors(metrics, "read")),
        write_errors(Errors(metrics, "write")),
        unknown_versions(metrics.Counter(
            "kvstore_disk_discarded_total",
            "Folders of the data directory that could not be read and were moved aside")),
        divergent(metrics.Counter("kv_divergent_puts_total",
                                  "Puts of other bytes under a held key: an exactness alarm")),
        corrupt(metrics.Counter("kv_corrupt_blocks_total",
                                "Blocks whose bytes failed a check, by where it was seen",
                                {{"hop", "disk"}})),
        reported(metrics.Counter("kv_corrupt_blocks_total",
                                 "Blocks whose bytes failed a check, by where it was seen",
                                 {{"hop", "reader"}})) {}

  prometheus::Gauge& bytes;
  prometheus::Gauge& blocks;
  prometheus::Gauge& up;
  prometheus::Counter& read_errors;
  prometheus::Counter& write_errors;
  prometheus::Counter& unknown_versions;
  prometheus::Counter& divergent;
  prometheus::Counter& corrupt;
  prometheus::Counter& reported;

 private:
  static prometheus::Counter& Errors(Metrics& metrics, const char* op) {
    return metrics.Counter("kvstore_disk_errors_total",
                           "Reads and writes that the disk or its file system refused",
                           {{"op", op}});
  }
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_DISK_METRICS_H_
