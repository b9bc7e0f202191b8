// The router's HTTP paths: the OpenAI API, and the list of workers.
//
//   POST /v1/chat/completions   POST /v1/completions   GET /v1/models   GET /pagoda/v1/workers
//
// Concurrency: handlers run on I/O threads and hand the work to the core's text threads.
#ifndef PAGODA_SERVICES_ROUTER_OPENAI_OPENAI_ROUTES_H_
#define PAGODA_SERVICES_ROUTER_OPENAI_OPENAI_ROUTES_H_

#include "common/http/routes.h"
#include "services/router/router_core.h"

namespace pagoda::router::openai {

// `core` outlives the server.
void AddOpenAiRoutes(http::HttpRoutes& routes, RouterCore* core);

}  // namespace pagoda::router::openai

#endif  // PAGODA_SERVICES_ROUTER_OPENAI_OPENAI_ROUTES_H_
