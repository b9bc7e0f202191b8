// The generations that are running: how many, so that a limit can hold, and which, so that a
// stopping router can cancel them and wait.
//
// Concurrency: every method may be called from any thread.
#ifndef PAGODA_SERVICES_ROUTER_ACTIVE_GENERATIONS_H_
#define PAGODA_SERVICES_ROUTER_ACTIVE_GENERATIONS_H_

#include <map>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"

namespace pagoda::router {

class Generation;

class ActiveGenerations {
 public:
  // Each costs a stream and its buffers; more than the workers behind one router can have running.
  static constexpr size_t kDefaultLimit = 4096;

  explicit ActiveGenerations(size_t limit = kDefaultLimit) : limit_(limit) {}

  // Errors: RESOURCE_EXHAUSTED at the limit, UNAVAILABLE after CancelAll.
  Status Add(const std::shared_ptr<Generation>& generation);
  void Remove(const Generation* generation);

  // UNAVAILABLE after CancelAll.
  Status Accepting() const;

  // Ends all that run with UNAVAILABLE; later ones are refused.
  void CancelAll();
  // False when some were still there at `deadline`.
  bool WaitUntilEmpty(TimePoint deadline);

  std::vector<std::shared_ptr<Generation>> All() const;
  size_t size() const;

 private:
  const size_t limit_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<const Generation*, std::shared_ptr<Generation>> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_ACTIVE_GENERATIONS_H_
