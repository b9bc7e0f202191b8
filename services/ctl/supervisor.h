// Watches a group of service programs in one loop: signals to us, their ready lines, their ends.
//
// A service prints one line on standard output when it is ready:
//   {"ready":true,"grpc":"127.0.0.1:PORT","http":"127.0.0.1:PORT","pid":N}
// What it prints after that is passed to standard error.
//
// A child that ends without being asked is started again after a while (restart_backoff.h), with
// the flags it had and at the addresses of its first ready line, because others know those. This
// begins when all were ready: a failure of the first start is a failure. Status 2 says that the
// flags are wrong, and they would be no better the next time. One that was started again and is not
// ready within a limit hangs: it is killed, and that is an end like any other.
//
// Concurrency: one thread, the one that made it (see child_process.h). It takes over SIGINT,
// SIGTERM, SIGHUP and SIGCHLD of that thread, so no other thread may run.
#ifndef PAGODA_SERVICES_CTL_SUPERVISOR_H_
#define PAGODA_SERVICES_CTL_SUPERVISOR_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "services/ctl/child_process.h"
#include "services/ctl/restart_backoff.h"

namespace pagoda::ctl {

// The addresses of a ready line. Errors: INVALID_ARGUMENT naming what is wrong with it.
struct ReadyLine {
  std::string grpc;
  std::string http;
};
StatusOr<ReadyLine> ParseReadyLine(std::string_view line);

// `arguments` with the listeners at `addresses`, whatever --grpc-address and --http-address said.
// REQUIRES: a flag and its value are two words.
std::vector<std::string> WithAddresses(const std::vector<std::string>& arguments,
                                       const ReadyLine& addresses);

class Supervisor {
 public:
  // restart: false, and a child that ends is gone. restart_ready_limit: how long one that was
  // started again may take until it is ready.
  Supervisor(bool restart, Duration restart_ready_limit);
  ~Supervisor();  // kills what still runs
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Errors: those of ChildProcess::Start.
  Status Start(const std::string& name, const std::string& file,
               const std::vector<std::string>& arguments);

  // Returns when every child has been ready. Errors: CANCELLED after a signal to us;
  // INVALID_ARGUMENT naming the child that found its flags wrong; UNAVAILABLE naming the one that
  // ended otherwise, printed something else, or was not ready at `deadline`.
  Status WaitReady(TimePoint deadline);

  // Restarts children that end. Returns the name of one that is gone for good, each once. Errors:
  // CANCELLED after a signal to us, UNAVAILABLE for a restarted child that prints something else
  // than a ready line. REQUIRES: WaitReady returned OK.
  StatusOr<std::string> WaitForEnd();

  // Ends the children stage by stage: asks those of a stage (SIGTERM), and kills those that still
  // run after `grace`. Another signal to us ends the patience with all of them. Returns when they
  // have ended. Names that were never started are skipped.
  void Stop(const std::vector<std::vector<std::string>>& stages, Duration grace);

  // REQUIRES: a child of this name was started.
  pid_t pid(std::string_view name) const { return Find(name).process->pid(); }
  bool Gone(std::string_view name) const { return Find(name).gone; }
  const ReadyLine& addresses(std::string_view name) const { return Find(name).addresses; }

 private:
  struct Child {
    std::string name;
    std::string file;
    std::vector<std::string> arguments;
    std::unique_ptr<ChildProcess> process;  // the last one
    bool ready = false;
    bool gone = false;  // WaitForEnd has said so
    ReadyLine addresses;
    RestartBackoff backoff;
    std::optional<TimePoint> restart_at;  // its process has ended, and this is when it gets another
    std::optional<TimePoint> ready_by;    // started again, not ready yet, and killed at this time
  };

  const Child& Find(std::string_view name) const;
  // Waits for any event until `deadline`, and takes it in. Errors: CANCELLED after a signal to us,
  // UNAVAILABLE for a child that prints something else than a ready line.
  Status Step(TimePoint deadline);
  // A child whose end was not dealt with, or null.
  Child* FindEnded();
  // Decides whether a child that has ended is restarted, and logs it.
  void TakeEnd(Child& child);
  void StartAgain(Child& child);
  // Restarts those whose time has come; returns when the next one's comes.
  TimePoint RestartDue();
  // Kills those that were started again and are not ready in time; returns when the next is due.
  TimePoint KillHanging();
  void WaitForEvent(TimePoint deadline);
  Status TakeOutput(Child& child);
  void StopStage(const std::vector<std::string>& names, Duration grace, int signals_before);

  const bool restart_;
  const Duration restart_ready_limit_;
  int signal_fd_ = -1;
  int stop_signals_ = 0;
  std::vector<Child> children_;
};

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_SUPERVISOR_H_
