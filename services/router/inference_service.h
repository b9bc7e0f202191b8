// The gRPC face of generations: Inference.Generate and ListModels.
//
// Concurrency: gRPC calls it from its own threads.
#ifndef PAGODA_SERVICES_ROUTER_INFERENCE_SERVICE_H_
#define PAGODA_SERVICES_ROUTER_INFERENCE_SERVICE_H_

#include <memory>

#include "services/router/router_core.h"

namespace grpc {
class Service;
}

namespace pagoda::router {

// `core` outlives the service.
std::unique_ptr<grpc::Service> MakeInferenceService(RouterCore* core);

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_INFERENCE_SERVICE_H_
