// Time as an injected dependency: code that waits or measures takes a Clock, so that tests and the
// simulator decide what time it is.
//
// Concurrency: every method may be called from any thread.
#ifndef PAGODA_COMMON_BASE_CLOCK_H_
#define PAGODA_COMMON_BASE_CLOCK_H_

#include <atomic>
#include <chrono>

namespace pagoda {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;  // monotonic; never a wall-clock time

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
  // Nanoseconds since 1970-01-01 UTC, for what leaves the process (records, logs).
  virtual std::chrono::nanoseconds WallTime() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
  std::chrono::nanoseconds WallTime() const override {
    return std::chrono::system_clock::now().time_since_epoch();
  }
  // One instance for the process.
  static SystemClock* Get() {
    static SystemClock clock;
    return &clock;
  }
};

// Stands still until it is advanced.
class ManualClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(Duration(now_.load())); }
  std::chrono::nanoseconds WallTime() const override {
    return std::chrono::nanoseconds(now_.load());
  }
  void Advance(Duration by) { now_.fetch_add(by.count()); }

 private:
  std::atomic<int64_t> now_{1'000'000'000};
};

inline double ToSeconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
inline Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_CLOCK_H_
