// What the store's service counts: kvstore_requests_total{op,result}, for find_missing one a call,
// for get and put one a block; kv_corrupt_blocks_total{hop}: put, and reader, one a report wherever
// the block is; kvstore_stalled_streams_total{op}.
//
// Concurrency: every method may be called from any thread.
#ifndef PAGODA_SERVICES_KVSTORE_STORE_METRICS_H_
#define PAGODA_SERVICES_KVSTORE_STORE_METRICS_H_

#include <array>

#include "common/base/metrics.h"
#include "common/kv/block_store.h"

namespace pagoda::kvstore {

class StoreMetrics {
 public:
  // The metrics outlive this.
  explicit StoreMetrics(Metrics& metrics);

  void CountFind(bool ok) { (ok ? find_ok_ : find_error_)->Increment(); }
  // REQUIRES: an outcome that a stream answers: not kRefused, for which it waits until there is
  // room, and not kFailed, which ends it.
  void CountGet(GetOutcome outcome) { get_[static_cast<size_t>(outcome)]->Increment(); }
  // REQUIRES: a final answer: not kFailed.
  void CountPut(PutOutcome outcome);
  void CountReport() { reported_->Increment(); }
  void CountStalledGet() { stalled_get_->Increment(); }
  void CountStalledPut() { stalled_put_->Increment(); }

 private:
  prometheus::Counter* find_ok_;
  prometheus::Counter* find_error_;
  std::array<prometheus::Counter*, 3> get_;
  std::array<prometheus::Counter*, 5> put_;
  prometheus::Counter* corrupt_put_;
  prometheus::Counter* reported_;
  prometheus::Counter* stalled_get_;
  prometheus::Counter* stalled_put_;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_STORE_METRICS_H_
