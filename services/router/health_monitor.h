// The router's pulse: finds workers that hang, moves the streams they had, ends attempts that take
// too long, and lets generations that wait for a worker look again.
//
// Concurrency: Tick from one thread: the monitor's own between Start and Stop, a test's without.
#ifndef PAGODA_SERVICES_ROUTER_HEALTH_MONITOR_H_
#define PAGODA_SERVICES_ROUTER_HEALTH_MONITOR_H_

#include <map>
#include <thread>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "services/router/router_core.h"

namespace pagoda::router {

class HealthMonitor {
 public:
  // Short beside every limit it watches; costs a look at each running generation.
  static constexpr Duration kTick = std::chrono::milliseconds(20);
  // A tick that comes this late says that this process, or its host, stood still: reports may lie
  // unread, and nobody is blamed for that time.
  static constexpr Duration kStall = std::chrono::milliseconds(500);

  // `core` outlives the monitor.
  explicit HealthMonitor(RouterCore* core) : core_(core), last_(core->clock->Now()) {}
  ~HealthMonitor() { Stop(); }

  void Start();
  void Stop();  // harmless when repeated

  void Tick();

 private:
  void Run();

  RouterCore* const core_;
  TimePoint last_;
  std::map<uint64_t, Hang> hanging_;  // at the last tick

  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_HEALTH_MONITOR_H_
