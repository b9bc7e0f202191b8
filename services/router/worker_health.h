// Whether a worker hangs, judged by its reports.
//
//   frozen  no report for `frozen_after`: the process, its host or the network stands still
//   stuck   it reports work and no engine step for `stuck_after`
// Either ends by itself when it reports, or steps, again.
//
// Concurrency: the owner's lock.
#ifndef PAGODA_SERVICES_ROUTER_WORKER_HEALTH_H_
#define PAGODA_SERVICES_ROUTER_WORKER_HEALTH_H_

#include <chrono>

#include "common/base/clock.h"
#include "pagoda/v1/control.pb.h"

namespace pagoda::router {

enum class Hang { kNone, kFrozen, kStuck };

struct HealthLimits {
  Duration frozen_after = std::chrono::seconds(2);  // 8 reports
  Duration stuck_after = std::chrono::seconds(10);  // longer than any step that somebody waits for
};

class WorkerHealth {
 public:
  void OnReport(TimePoint now, const v1::ReportRequest& report) {
    if (report.step_counter() != steps_ || report.running() + report.waiting() == 0 ||
        reported_at_ == TimePoint()) {
      stepped_at_ = now;
    }
    steps_ = report.step_counter();
    reported_at_ = now;
  }

  // REQUIRES: a report has come.
  Hang Check(TimePoint now, const HealthLimits& limits) const {
    if (now - reported_at_ > limits.frozen_after) return Hang::kFrozen;
    if (now - stepped_at_ > limits.stuck_after) return Hang::kStuck;
    return Hang::kNone;
  }

  // This process stood still for `time` and could not have taken a report.
  void Forgive(Duration time) {
    reported_at_ += time;
    stepped_at_ += time;
  }

 private:
  TimePoint reported_at_{};
  TimePoint stepped_at_{};
  uint64_t steps_ = 0;
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_WORKER_HEALTH_H_
