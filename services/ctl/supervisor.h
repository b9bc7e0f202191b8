// Watches a group of service programs in one loop: signals to us, their ready lines, their ends.
//
// A service prints one line on standard output when it is ready:
//   {"ready":true,"grpc":"127.0.0.1:PORT","http":"127.0.0.1:PORT","pid":N}
// What it prints after that is passed to standard error.
//
// It restarts nothing: it reports a child that ends without being asked.
//
// Concurrency: one thread, the one that made it (see child_process.h). It takes over SIGINT,
// SIGTERM, SIGHUP and SIGCHLD of that thread, so no other thread may run.
#ifndef PAGODA_SERVICES_CTL_SUPERVISOR_H_
#define PAGODA_SERVICES_CTL_SUPERVISOR_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "services/ctl/child_process.h"

namespace pagoda::ctl {

// The addresses of a ready line. Errors: INVALID_ARGUMENT naming what is wrong with it.
struct ReadyLine {
  std::string grpc;
  std::string http;
};
StatusOr<ReadyLine> ParseReadyLine(std::string_view line);

class Supervisor {
 public:
  Supervisor();
  ~Supervisor();  // kills what still runs
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Errors: those of ChildProcess::Start.
  Status Start(const std::string& name, const std::string& file,
               const std::vector<std::string>& arguments);

  // Returns when every child has been ready. Errors: CANCELLED after a signal to us; UNAVAILABLE
  // naming the child that ended, printed something else, or was not ready at `deadline`.
  Status WaitReady(TimePoint deadline);

  // Returns the name of a child that has ended, each once. Errors: CANCELLED after a signal to us.
  // REQUIRES: WaitReady returned OK.
  StatusOr<std::string> WaitForEnd();

  // Ends the children stage by stage: asks those of a stage (SIGTERM), and kills those that still
  // run after `grace`. Another signal to us ends the patience with all of them. Returns when they
  // have ended. Names that were never started are skipped.
  void Stop(const std::vector<std::vector<std::string>>& stages, Duration grace);

  // REQUIRES: a child of this name was started.
  pid_t pid(std::string_view name) const { return Find(name).process->pid(); }
  bool Running(std::string_view name) const { return Find(name).process->Running(); }
  const ReadyLine& addresses(std::string_view name) const { return Find(name).addresses; }

 private:
  struct Child {
    std::string name;
    std::unique_ptr<ChildProcess> process;
    bool ready = false;
    bool end_reported = false;
    ReadyLine addresses;
  };

  const Child& Find(std::string_view name) const;
  // Waits for any event until `deadline`, and takes it in. Errors: CANCELLED after a signal to us,
  // UNAVAILABLE for a child that prints something else than a ready line.
  Status Step(TimePoint deadline);
  // A child that has ended and was not reported, or null.
  Child* FindEnded();
  void WaitForEvent(TimePoint deadline);
  Status TakeOutput(Child& child);
  void StopStage(const std::vector<std::string>& names, Duration grace, int signals_before);

  int signal_fd_ = -1;
  int stop_signals_ = 0;
  std::vector<Child> children_;
};

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_SUPERVISOR_H_
