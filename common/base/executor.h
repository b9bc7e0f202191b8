// A few threads that run tasks from one bounded queue.
//
// Concurrency: every method may be called from any thread; a task may add tasks. Stop runs what was
// accepted and joins the threads; the destructor does the same.
#ifndef PAGODA_COMMON_BASE_EXECUTOR_H_
#define PAGODA_COMMON_BASE_EXECUTOR_H_

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/bounded_queue.h"

namespace pagoda {

// Names the calling thread (at most 15 characters are shown) and adds to its niceness.
void SetUpThread(const std::string& name, int nice = 0);

class Executor {
 public:
  struct Options {
    std::string name;  // thread name, at most 15 characters are shown
    int threads = 1;
    size_t queue_limit = 1024;
  };

  explicit Executor(const Options& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // False when the queue is full or Stop was called: the task will not run.
  bool TryRun(std::function<void()> task);

  void Stop();

  size_t pending() const { return queue_.size(); }

 private:
  void Work(const Options& options);

  BoundedQueue<std::function<void()>> queue_;
  Mutex stop_mutex_;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_EXECUTOR_H_
