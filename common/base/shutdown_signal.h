// Waits for SIGINT or SIGTERM in an ordinary thread, so that stopping is plain code and not a
// signal handler.
//
// Concurrency: make one in main before any other thread starts (threads inherit the blocked
// signals).
#ifndef PAGODA_COMMON_BASE_SHUTDOWN_SIGNAL_H_
#define PAGODA_COMMON_BASE_SHUTDOWN_SIGNAL_H_

namespace pagoda {

class ShutdownSignal {
 public:
  // Blocks SIGINT and SIGTERM, and ignores SIGPIPE.
  ShutdownSignal();

  // Returns the first signal. From then on a second one ends the process at once.
  int Wait();
};

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_SHUTDOWN_SIGNAL_H_
