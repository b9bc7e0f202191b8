// The tiny model's text side as the router serves it, without a file and with one.
//
// Concurrency: plain functions.
#ifndef PAGODA_SERVICES_ROUTER_TESTING_TEST_MODEL_H_
#define PAGODA_SERVICES_ROUTER_TESTING_TEST_MODEL_H_

#include <memory>

#include "services/router/router_server.h"
#include "services/router/served_model.h"

namespace pagoda::router::testing {

inline constexpr uint32_t kTestContext = 512;

// Served as "tiny" and "tiny-alias".
std::shared_ptr<const ServedModel> MakeTestModel();

// A router on free ports that serves the tiny model as "tiny" and takes no worker for frozen.
std::unique_ptr<RouterServer> StartTestRouter(RouterServer::Options options = {});

}  // namespace pagoda::router::testing

#endif  // PAGODA_SERVICES_ROUTER_TESTING_TEST_MODEL_H_
