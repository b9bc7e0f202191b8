// What the handlers of one store share.
//
// Concurrency: the parts may be used from any thread.
#ifndef PAGODA_SERVICES_KVSTORE_STREAM_CONTEXT_H_
#define PAGODA_SERVICES_KVSTORE_STREAM_CONTEXT_H_

#include "common/base/clock.h"
#include "services/kvstore/inflight_bytes.h"
#include "services/kvstore/reserving_store.h"
#include "services/kvstore/store_metrics.h"
#include "services/kvstore/stream_limits.h"
#include "services/kvstore/stream_watch.h"

namespace pagoda::kvstore {

struct StreamContext {
  ReservingStore& store;
  StoreMetrics& metrics;
  StreamWatch& watch;
  ConnectionBudgets& budgets;
  Clock& clock;
  const StreamLimits limits;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_STREAM_CONTEXT_H_
