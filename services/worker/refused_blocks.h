// What this worker does not load again: blocks by key, and whatever some instances computed. Both
// are bounded; the oldest entry makes way, which costs another recheck at most.
//
// Concurrency: every method from any thread.
#ifndef PAGODA_SERVICES_WORKER_REFUSED_BLOCKS_H_
#define PAGODA_SERVICES_WORKER_REFUSED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/container/flat_hash_set.h"
#include "common/base/mutex.h"
#include "common/kv/block_key.h"

namespace pagoda::worker {

class RefusedBlocks {
 public:
  static constexpr size_t kMaxKeys = 16384;     // some chains of the longest prompts
  static constexpr size_t kMaxProducers = 256;  // more than a cluster has workers

  void AddKey(const BlockKey& key) {
    MutexLock lock(mutex_);
    keys_.Add(key, kMaxKeys);
  }
  void AddProducer(uint64_t instance) {
    MutexLock lock(mutex_);
    producers_.Add(instance, kMaxProducers);
  }
  bool HasKey(const BlockKey& key) const {
    MutexLock lock(mutex_);
    return keys_.Has(key);
  }
  bool HasProducer(uint64_t instance) const {
    MutexLock lock(mutex_);
    return producers_.Has(instance);
  }

 private:
  template <typename T>
  class BoundedSet {
   public:
    void Add(const T& value, size_t limit) {
      if (!set_.insert(value).second) return;
      order_.push_back(value);
      if (order_.size() <= limit) return;
      set_.erase(order_.front());
      order_.pop_front();
    }
    bool Has(const T& value) const { return set_.contains(value); }

   private:
    absl::flat_hash_set<T> set_;
    std::deque<T> order_;
  };

  mutable Mutex mutex_;
  BoundedSet<BlockKey> keys_ ABSL_GUARDED_BY(mutex_);
  BoundedSet<uint64_t> producers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_REFUSED_BLOCKS_H_
