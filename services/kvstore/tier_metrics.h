// What every tier counts.
//
// Concurrency: every metric may be moved from any thread.
#ifndef PAGODA_SERVICES_KVSTORE_TIER_METRICS_H_
#define PAGODA_SERVICES_KVSTORE_TIER_METRICS_H_

#include <string>

#include "common/base/metrics.h"

namespace pagoda::kvstore {

struct TierMetrics {
  // `tier`: ram or disk.
  TierMetrics(Metrics& metrics, const std::string& tier)
      : bytes(metrics.Gauge("kvstore_bytes", "Bytes of blocks held", {{"tier", tier}})),
        blocks(metrics.Gauge("kvstore_blocks", "Blocks held", {{"tier", tier}})),
        divergent(metrics.Counter("kv_divergent_puts_total",
                                  "Puts of other bytes under a held key: an exactness alarm")),
        corrupt(Corrupt(metrics, tier)) {}

  // `hop`: where it was seen.
  static prometheus::Counter& Corrupt(Metrics& metrics, const std::string& hop) {
    return metrics.Counter("kv_corrupt_blocks_total",
                           "Blocks whose bytes failed a check, by where it was seen",
                           {{"hop", hop}});
  }

  prometheus::Gauge& bytes;
  prometheus::Gauge& blocks;
  prometheus::Counter& divergent;
  prometheus::Counter& corrupt;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_TIER_METRICS_H_
