#include "common/base/executor.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace pagoda {

void SetUpThread(const std::string& name, int nice) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  if (nice != 0) setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), nice);
}

Executor::Executor(const Options& options) : queue_(options.queue_limit) {
  MutexLock lock(stop_mutex_);
  for (int i = 0; i < options.threads; ++i) {
    threads_.emplace_back([this, options] { Work(options); });
  }
}

Executor::~Executor() { Stop(); }

bool Executor::TryRun(std::function<void()> task) { return queue_.TryPush(std::move(task)); }

void Executor::Stop() {
  queue_.Close();
  MutexLock lock(stop_mutex_);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Executor::Work(const Options& options) {
  SetUpThread(options.name);
  while (auto task = queue_.Pop()) (*task)();
}

}  // namespace pagoda
