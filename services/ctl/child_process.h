// One program that this process started: its standard output as lines, signals to it, its end.
//
// The child has no standard input, keeps our standard error, inherits no other descriptor, lives in
// a process group of its own (Ctrl-C in a terminal reaches only us, and we tell the child), and is
// killed by the kernel when we die, however we die.
//
// Concurrency: one thread, which must live as long as the child: the kernel kills a child when the
// thread that started it ends.
#ifndef PAGODA_SERVICES_CTL_CHILD_PROCESS_H_
#define PAGODA_SERVICES_CTL_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace pagoda::ctl {

class ChildProcess {
 public:
  // The longest line a child may print: a ready line has about 100 bytes.
  static constexpr size_t kMaxLineBytes = 64 << 10;

  // Errors: NOT_FOUND when the file cannot be executed; INTERNAL when there is no process or pipe.
  static StatusOr<std::unique_ptr<ChildProcess>> Start(const std::string& file,
                                                       const std::vector<std::string>& arguments);

  ~ChildProcess();  // kills it if it still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Its standard output for poll(), or -1 after its end.
  int output_fd() const { return output_fd_; }
  // The lines that are complete by now, without line ends; never blocks. A line without an end at
  // the end of the output, or longer than the limit, counts as a line.
  std::vector<std::string> ReadLines();

  // Looks whether it has ended; never blocks.
  bool Running();
  // "ended with status 2", "was killed by signal 9". REQUIRES: !Running().
  std::string DescribeEnd() const;
  // Its exit status, or nothing when a signal killed it. REQUIRES: !Running().
  std::optional<int> exit_status() const;

  void Signal(int signal);

 private:
  ChildProcess(pid_t pid, int output_fd) : pid_(pid), output_fd_(output_fd) {}

  pid_t pid_;
  int output_fd_;
  std::string partial_line_;
  std::optional<int> wait_status_;
};

// Runs a program to its end and returns what it printed. Errors: those of Start; UNAVAILABLE when
// it did not end with status 0 before `deadline`; RESOURCE_EXHAUSTED when it printed over 1 MiB.
StatusOr<std::string> CaptureOutput(const std::string& file,
                                    const std::vector<std::string>& arguments, TimePoint deadline);

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_CHILD_PROCESS_H_
