// How long a child that ended waits for its restart: twice as long each time, and from the start
// again after it was ready for a while.
//
// Concurrency: a plain value.
#ifndef PAGODA_SERVICES_CTL_RESTART_BACKOFF_H_
#define PAGODA_SERVICES_CTL_RESTART_BACKOFF_H_

#include <algorithm>
#include <chrono>
#include <optional>

#include "common/base/clock.h"

namespace pagoda::ctl {

class RestartBackoff {
 public:
  // A process that died by chance is soon back; one that dies at once each time costs little.
  static constexpr Duration kFirstWait = std::chrono::milliseconds(500);
  static constexpr Duration kLongestWait = std::chrono::seconds(10);
  // Ready for this long: what killed it before is over.
  static constexpr Duration kSteadyTime = std::chrono::seconds(10);

  void OnReady(TimePoint now) { ready_since_ = now; }

  // Returns how long to wait.
  Duration OnEnd(TimePoint now) {
    if (ready_since_ && now - *ready_since_ >= kSteadyTime) next_wait_ = kFirstWait;
    ready_since_.reset();
    Duration wait = next_wait_;
    next_wait_ = std::min(2 * next_wait_, kLongestWait);
    return wait;
  }

 private:
  Duration next_wait_ = kFirstWait;
  std::optional<TimePoint> ready_since_;
};

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_RESTART_BACKOFF_H_
