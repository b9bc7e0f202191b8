// How fast this worker computes prompts: a moving average that bounds how long a load is worth
// waiting for.
//
// Concurrency: the engine thread only.
#ifndef PAGODA_SERVICES_WORKER_PREFILL_RATE_H_
#define PAGODA_SERVICES_WORKER_PREFILL_RATE_H_

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"

namespace pagoda::worker {

class PrefillRate {
 public:
  // Fewer rows say more about a step's fixed costs than about prompts.
  static constexpr int32_t kMinRows = 16;

  // `first`: tokens per second, from the start-up self-test; above 0.
  explicit PrefillRate(double first) : tokens_per_second_(std::max(first, 1e-3)) {}

  // A step of `rows` rows took `elapsed`.
  void Observe(int32_t rows, Duration elapsed) {
    if (rows < kMinRows || elapsed <= Duration::zero()) return;
    constexpr double kWeight = 0.2;  // some ten steps of memory
    tokens_per_second_ += kWeight * (rows / ToSeconds(elapsed) - tokens_per_second_);
  }

  // The time that computing `tokens` would take; at most an hour.
  Duration Predict(int64_t tokens) const {
    return FromSeconds(std::min(3600.0, static_cast<double>(tokens) / tokens_per_second_));
  }

  double tokens_per_second() const { return tokens_per_second_; }

 private:
  double tokens_per_second_;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_PREFILL_RATE_H_
