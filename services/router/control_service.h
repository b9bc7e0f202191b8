// The gRPC face of the worker registry: translates, decides nothing.
//
// Concurrency: gRPC calls it from its own threads.
#ifndef PAGODA_SERVICES_ROUTER_CONTROL_SERVICE_H_
#define PAGODA_SERVICES_ROUTER_CONTROL_SERVICE_H_

#include <memory>

#include "services/router/worker_registry.h"

namespace grpc {
class Service;
}

namespace pagoda::router {

// `registry` outlives the service.
std::unique_ptr<grpc::Service> MakeControlService(WorkerRegistry* registry);

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_CONTROL_SERVICE_H_
