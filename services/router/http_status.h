// The one place where a Status becomes an HTTP error.
//
// Concurrency: plain functions.
#ifndef PAGODA_SERVICES_ROUTER_HTTP_STATUS_H_
#define PAGODA_SERVICES_ROUTER_HTTP_STATUS_H_

#include "common/base/status.h"
#include "common/http/http_message.h"

namespace pagoda::router {

// REQUIRES: !status.ok().
http::HttpError ToHttpError(const Status& status);

// The whole response, with Retry-After where trying again can help (429, 503).
http::HttpResponse ToHttpResponse(const Status& status);

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_HTTP_STATUS_H_
