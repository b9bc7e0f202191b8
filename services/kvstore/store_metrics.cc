#include "services/kvstore/store_metrics.h"

#include "services/kvstore/tier_metrics.h"

namespace pagoda::kvstore {

StoreMetrics::StoreMetrics(Metrics& metrics) {
  auto request = [&](const char* op, const char* result) {
    return &metrics.Counter("kvstore_requests_total",
                            "Calls of find_missing and blocks of get and put, by outcome",
                            {{"op", op}, {"result", result}});
  };
  find_ok_ = request("find_missing", "ok");
  find_error_ = request("find_missing", "error");
  const char* get[] = {"found", "missing", "corrupt"};  // by GetOutcome
  for (size_t i = 0; i < get_.size(); ++i) get_[i] = request("get", get[i]);
  const char* put[] = {"stored", "have", "divergent", "no_room", "corrupt"};  // by PutOutcome
  for (size_t i = 0; i < put_.size(); ++i) put_[i] = request("put", put[i]);
  corrupt_put_ = &TierMetrics::Corrupt(metrics, "put");
  reported_ = &TierMetrics::Corrupt(metrics, "reader");
  auto stalled = [&](const char* op) {
    return &metrics.Counter("kvstore_stalled_streams_total",
                            "Streams cancelled because the client made no progress", {{"op", op}});
  };
  stalled_get_ = stalled("get");
  stalled_put_ = stalled("put");
}

void StoreMetrics::CountPut(PutOutcome outcome) {
  put_[static_cast<size_t>(outcome)]->Increment();
  if (outcome == PutOutcome::kCorrupt) corrupt_put_->Increment();
}

}  // namespace pagoda::kvstore
