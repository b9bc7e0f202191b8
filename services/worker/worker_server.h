// The worker process: the only place that knows all of its parts.
//
//   model file -> backend -> engine -> gRPC service        store client -> transfer -> engine
//   engine's statistics -> registrars -> routers
//
// Concurrency: Start and Shutdown from one thread.
#ifndef PAGODA_SERVICES_WORKER_WORKER_SERVER_H_
#define PAGODA_SERVICES_WORKER_WORKER_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "services/worker/worker_options.h"

namespace pagoda::worker {

class WorkerServer {
 public:
  // Called once with the gRPC and the HTTP address, when the model is loaded and, if routers are
  // given, one of them knows this worker.
  using ReadyHandler = std::function<void(const std::string& grpc, const std::string& http)>;

  // Loads the model (this takes its time) and listens. Errors name the flag or file.
  static StatusOr<std::unique_ptr<WorkerServer>> Start(const WorkerOptions& options,
                                                       ReadyHandler on_ready);

  virtual ~WorkerServer() = default;

  // The drain, in steps:
  //   1. Readiness is false, the gRPC health too, and the routers hear "draining" at once.
  //   2. For --drain-delay requests are still taken: from who has not heard of it yet.
  //   3. New ones are refused (UNAVAILABLE), and running ones go on for --drain-timeout at most.
  //   4. What still runs ends with UNAVAILABLE: a router goes on with it at another worker. Blocks
  //      on their way to the store get 2 s to arrive there.
  virtual void Shutdown() = 0;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_WORKER_SERVER_H_
