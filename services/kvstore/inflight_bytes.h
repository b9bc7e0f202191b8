// How many bytes of blocks are on their way to one connection: from the send until gRPC lets go of
// the slice. They pin slots of the slab, so they are bounded.
//
// Concurrency: every method may be called from any thread; a lent view may be released on any.
#ifndef PAGODA_SERVICES_KVSTORE_INFLIGHT_BYTES_H_
#define PAGODA_SERVICES_KVSTORE_INFLIGHT_BYTES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/base/mutex.h"
#include "common/kv/block_store.h"

namespace pagoda::kvstore {

class InflightBytes {
 public:
  // `on_room` is called after bytes came back when a Take had failed; it must not block.
  InflightBytes(uint64_t limit, std::function<void()> on_room)
      : limit_(limit), on_room_(std::move(on_room)) {}

  // False when the bytes would pass the limit; one block alone may always go.
  bool TryTake(uint64_t bytes);
  void Return(uint64_t bytes);
  uint64_t taken() const;

 private:
  const uint64_t limit_;
  const std::function<void()> on_room_;
  mutable Mutex mutex_;
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;
};

// The view with its taken bytes: they return when the last owner lets go.
BlockView ReturnWhenReleased(BlockView view, std::shared_ptr<InflightBytes> budget);

// One budget for each connection that has streams.
class ConnectionBudgets {
 public:
  ConnectionBudgets(uint64_t limit, std::function<void()> on_room)
      : limit_(limit), on_room_(std::move(on_room)) {}

  std::shared_ptr<InflightBytes> For(const std::string& peer);
  // Of all connections.
  uint64_t taken();

 private:
  const uint64_t limit_;
  const std::function<void()> on_room_;
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<InflightBytes>> budgets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_INFLIGHT_BYTES_H_
