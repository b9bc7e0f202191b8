// Keeps the worker known to one router: registers, then reports its load, and starts over with
// back-off whenever the connection breaks or the router has forgotten it.
//
// Concurrency: one thread of its own, apart from the engine's, so that a slow step does not silence
// the reports; all methods may be called from any thread.
#ifndef PAGODA_SERVICES_WORKER_REGISTRAR_H_
#define PAGODA_SERVICES_WORKER_REGISTRAR_H_

#include <grpcpp/client_context.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "pagoda/v1/control.pb.h"

namespace pagoda::worker {

class Registrar {
 public:
  struct Options {
    std::string router_address;
    v1::RegisterRequest registration;
    // Fills the load of a report; called every interval on the registrar's thread and must not
    // wait.
    std::function<void(v1::ReportRequest&)> fill_report;
    // Called each time the router begins to send us requests, on the registrar's thread.
    std::function<void()> on_registered = [] {};
    // The interval when the router names none.
    Duration report_interval = std::chrono::milliseconds(250);
  };

  explicit Registrar(Options options);
  ~Registrar();

  // Reports now instead of at the next interval.
  void ReportSoon();

  // True while the router holds our registration and answers our reports.
  bool registered() const { return registered_; }

 private:
  void Run();
  bool Register();
  void Report();
  void OnFirstAnswer();
  // Waits, at most until ReportSoon or until the registrar is stopped; true when it is stopped.
  bool WaitOrStopped(Duration time);
  bool stopped();
  // Makes `context` the one that the destructor cancels (null: none). False when already stopped.
  bool SetCurrentCall(grpc::ClientContext* context);

  const Options options_;
  std::atomic<bool> registered_ = false;
  std::atomic<int64_t> interval_ms_;
  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool report_soon_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* current_call_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::shared_ptr<grpc::Channel> channel_;
  std::thread thread_;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_REGISTRAR_H_
