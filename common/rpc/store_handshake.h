// What a client knows of the KV store it talks to: whether they have a protocol version in common
// (R25), the store's limits, and which instance answers (R28).
//
// The store is asked (Describe) when the client is made, with the first call after one that found
// no store, and once a second while there are calls: a store may be replaced between two calls
// without either of them failing. No call waits for the answer: until it is there, calls go as if
// the store were one of ours, and end at their deadlines if it is not.
//
// What was learned of an instance ends with the connection to it, or with the next answer.
//
// Concurrency: every method may be called from any thread; none waits.
#ifndef PAGODA_COMMON_RPC_STORE_HANDSHAKE_H_
#define PAGODA_COMMON_RPC_STORE_HANDSHAKE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "pagoda/v1/kvstore.pb.h"

namespace pagoda::rpc {

// Ours, or the store's where those are smaller. The put credit is not among them: we never have
// more than one block unasked on its way in a stream, and that one a store always takes.
struct StoreLimits {
  uint64_t message_bytes;
  size_t keys_per_call;
};

class StoreHandshake {
 public:
  // `metrics` may be null, else outlives this.
  StoreHandshake(std::string address, Metrics* metrics);

  // What a call must keep to, or UNAVAILABLE: the store speaks no version of ours, and counts as
  // absent.
  StatusOr<StoreLimits> Limits() const;

  // Whether the caller is to ask the store now; true once for each question.
  bool TryAsk(TimePoint now);
  // The end of a question for which TryAsk was true.
  void Answered(const Status& status, const v1::DescribeResponse& answer);
  // A call ended UNAVAILABLE: there is no connection, none any more, or a store that refuses.
  void ConnectionLost();

 private:
  enum class Peer { kUnknown, kOurs, kForeign };

  void NoteInstance(uint64_t instance_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string address_;
  prometheus::Counter* mismatches_ = nullptr;  // null, as the next: not measured
  prometheus::Counter* restarts_ = nullptr;
  mutable Mutex mutex_;
  Peer peer_ ABSL_GUARDED_BY(mutex_) = Peer::kUnknown;
  StoreLimits limits_ ABSL_GUARDED_BY(mutex_);
  uint64_t instance_id_ ABSL_GUARDED_BY(mutex_) = 0;       // the last that answered; 0: none yet
  std::optional<uint64_t> refused_instance_ ABSL_GUARDED_BY(mutex_);  // its mismatch is in the log
  bool asking_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint next_question_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
};

}  // namespace pagoda::rpc

#endif  // PAGODA_COMMON_RPC_STORE_HANDSHAKE_H_
