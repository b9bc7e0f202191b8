// Looks at the running streams from time to time, and at once when it is woken: a stream without
// progress ends itself, one that waited for room goes on.
//
// Concurrency: every method may be called from any thread; Tick runs on the watch's own thread.
#ifndef PAGODA_SERVICES_KVSTORE_STREAM_WATCH_H_
#define PAGODA_SERVICES_KVSTORE_STREAM_WATCH_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace pagoda::kvstore {

class WatchedStream {
 public:
  virtual ~WatchedStream() = default;
  virtual void Tick(TimePoint now) = 0;
};

class StreamWatch {
 public:
  // Often enough for limits of seconds, and no load: it sleeps while there is no stream.
  static constexpr Duration kPeriod = std::chrono::milliseconds(250);

  explicit StreamWatch(Clock* clock);
  ~StreamWatch();  // joins the thread
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;

  // Watched as long as it lives.
  void Add(const std::shared_ptr<WatchedStream>& stream);

  // Wakes the watch; may outlive it.
  std::function<void()> Waker() const;

 private:
  struct Shared {
    Mutex mutex;
    CondVar changed;
    bool woken ABSL_GUARDED_BY(mutex) = false;
    bool stopped ABSL_GUARDED_BY(mutex) = false;
    std::vector<std::weak_ptr<WatchedStream>> streams ABSL_GUARDED_BY(mutex);
  };

  void Run();
  // Those that live; false when the watch ends.
  bool WaitForWork(std::vector<std::shared_ptr<WatchedStream>>& live);

  Clock* const clock_;
  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_STREAM_WATCH_H_
