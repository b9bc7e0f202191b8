// Calls to one worker's Worker.Generate. gRPC stays in the source.
//
// Concurrency: every method may be called from any thread. A call's callbacks run on gRPC's
// threads, one at a time, and must not block.
#ifndef PAGODA_SERVICES_ROUTER_WORKER_CLIENT_H_
#define PAGODA_SERVICES_ROUTER_WORKER_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "pagoda/v1/worker.pb.h"

namespace pagoda::router {

// One running call. Dropping it changes nothing: the call lives until it is done.
class WorkerCall {
 public:
  virtual ~WorkerCall() = default;
  // on_done follows soon with CANCELLED (or how the call ended before).
  virtual void Cancel() = 0;
};

// Owns a channel, so the last reference must not be dropped on a thread of gRPC
// (common/rpc/channel.h). Its calls hold one each.
class WorkerClient {
 public:
  struct Callbacks {
    std::function<void(const v1::WorkerGenerateResponse&)> on_message;
    // Once, last. `reached`: the worker had taken the request up.
    std::function<void(Status, bool reached)> on_done;
  };

  // `address`: HOST:PORT. Connecting begins with the first call and then goes on by itself.
  static std::shared_ptr<WorkerClient> Create(const std::string& address);
  virtual ~WorkerClient() = default;

  virtual std::shared_ptr<WorkerCall> Generate(v1::WorkerGenerateRequest request,
                                               TimePoint deadline, Callbacks callbacks) = 0;
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_WORKER_CLIENT_H_
