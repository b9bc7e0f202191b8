// Waits for SIGINT or SIGTERM in an ordinary thread, so that stopping is plain code and not a
// signal handler. One that comes while the process still starts ends it at once.
//
// Concurrency: one a process, made and waited for by main's thread.
#ifndef PAGODA_COMMON_BASE_SHUTDOWN_SIGNAL_H_
#define PAGODA_COMMON_BASE_SHUTDOWN_SIGNAL_H_

namespace pagoda {

class ShutdownSignal {
 public:
  // Until Wait, SIGINT and SIGTERM end the process with status 0: starting may take long. Who is
  // served in the moment between the start and Wait is cut off as by a kill. SIGPIPE is ignored.
  ShutdownSignal();

  // Returns after the first signal. From then on a second one ends the process at once.
  void Wait();
};

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_SHUTDOWN_SIGNAL_H_
