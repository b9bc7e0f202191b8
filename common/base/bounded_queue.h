// A first-in first-out queue with a named limit, between threads.
//
// Concurrency: every method may be called from any thread. Push never waits: a full queue is the
// caller's to handle (refuse, drop and count, or pause), because nobody here may block on a slow
// peer.
#ifndef PAGODA_COMMON_BASE_BOUNDED_QUEUE_H_
#define PAGODA_COMMON_BASE_BOUNDED_QUEUE_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace pagoda {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t limit) : limit_(limit) {}

  // False when the queue is full or closed; `item` is then untouched.
  bool TryPush(T&& item) {
    MutexLock lock(mutex_);
    if (closed_ || items_.size() >= limit_) return false;
    items_.push_back(std::move(item));
    not_empty_.Signal();
    return true;
  }

  // Waits until there is an item or the queue is closed. Empty only when closed and drained.
  std::optional<T> Pop() {
    MutexLock lock(mutex_);
    while (items_.empty() && !closed_) not_empty_.Wait(mutex_);
    return TakeFront();
  }

  // Waits at most until `deadline`.
  std::optional<T> PopUntil(TimePoint deadline) {
    MutexLock lock(mutex_);
    while (items_.empty() && !closed_) {
      if (!not_empty_.WaitUntil(mutex_, deadline)) break;
    }
    return TakeFront();
  }

  // No more pushes; waiting and later pops drain what is left and then return empty.
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
    not_empty_.SignalAll();
  }

  size_t size() const {
    MutexLock lock(mutex_);
    return items_.size();
  }
  size_t limit() const { return limit_; }

 private:
  std::optional<T> TakeFront() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    return item;
  }

  const size_t limit_;
  mutable Mutex mutex_;
  CondVar not_empty_;
  std::deque<T> items_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_BOUNDED_QUEUE_H_
