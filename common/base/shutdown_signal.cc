#include "common/base/shutdown_signal.h"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace pagoda {
namespace {

// What a signal handler may use: a lock-free atomic, a semaphore, sigaction, _exit.
std::atomic<bool> waiting = false;
static_assert(std::atomic<bool>::is_always_lock_free);
sem_t received;

void Handle(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void OnSignal(int) {
  if (!waiting) _exit(0);
  Handle(SIG_DFL);
  sem_post(&received);
}

}  // namespace

ShutdownSignal::ShutdownSignal() {
  sem_init(&received, 0, 0);
  signal(SIGPIPE, SIG_IGN);
  Handle(OnSignal);
}

void ShutdownSignal::Wait() {
  waiting = true;
  while (sem_wait(&received) != 0) {  // EINTR
  }
}

}  // namespace pagoda
