// How long a request waits for the KV store (R26): for as long as that can pay, or, where it is
// told to insist, longer.
//
// Concurrency: values.
#ifndef PAGODA_SERVICES_WORKER_STORE_PATIENCE_H_
#define PAGODA_SERVICES_WORKER_STORE_PATIENCE_H_

#include <algorithm>
#include <limits>

#include "common/base/clock.h"

namespace pagoda::worker {

struct StorePatience {
  // For the answer which blocks are held. A healthy store answers within a few milliseconds.
  Duration max_lookup = std::chrono::milliseconds(50);
  // Of the time that computing the blocks would take: what asking may cost when it was in vain.
  double lookup_share = 0.1;
  // A load is worth what computing its blocks would take; it gets at least this.
  Duration min_load{0};

  // --kv-load load: blocks are loaded also where computing is faster, to test or measure loading.
  // Five seconds: a pool of blocks comes in less, and a store that hangs stays bearable.
  static StorePatience Insisting() {
    return {.lookup_share = std::numeric_limits<double>::infinity(),
            .min_load = std::chrono::seconds(5)};
  }

  // `recompute`: the predicted time of computing the blocks; above 0.
  Duration ForLookup(Duration recompute) const {
    return FromSeconds(std::min(ToSeconds(max_lookup), lookup_share * ToSeconds(recompute)));
  }
  Duration ForLoad(Duration recompute) const { return std::max(recompute, min_load); }
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_STORE_PATIENCE_H_
