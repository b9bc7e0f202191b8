// The gRPC calls that are open, so that a stopping router can wait until their clients have heard
// how they ended. Streams that end with the connection only (workers' reports) are not counted.
//
// Concurrency: every method may be called from any thread.
#ifndef PAGODA_SERVICES_ROUTER_OPEN_CALLS_H_
#define PAGODA_SERVICES_ROUTER_OPEN_CALLS_H_

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace pagoda::router {

class OpenCalls {
 public:
  void Begin() {
    MutexLock lock(mutex_);
    ++open_;
  }

  void End() {
    MutexLock lock(mutex_);
    if (--open_ == 0) none_.SignalAll();
  }

  // False when some were still open at `deadline`.
  bool WaitUntilNone(TimePoint deadline) {
    MutexLock lock(mutex_);
    while (open_ > 0) {
      if (!none_.WaitUntil(mutex_, deadline)) return open_ == 0;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar none_;
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_OPEN_CALLS_H_
