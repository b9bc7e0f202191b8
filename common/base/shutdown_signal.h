// Waits for SIGINT or SIGTERM in an ordinary thread, so that stopping is plain code and not a
// signal handler. A signal that comes before anything is served ends the process at once.
//
// Concurrency: one a process, made and waited for by main's thread.
#ifndef PAGODA_COMMON_BASE_SHUTDOWN_SIGNAL_H_
#define PAGODA_COMMON_BASE_SHUTDOWN_SIGNAL_H_

namespace pagoda {

class ShutdownSignal {
 public:
  // Until Wait, SIGINT and SIGTERM end the process with status 0: starting may take long, and
  // nobody would lose anything. SIGPIPE is ignored.
  ShutdownSignal();

  // Returns after the first signal. From then on a second one ends the process at once.
  void Wait();
};

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_SHUTDOWN_SIGNAL_H_
