// What a failed attempt's error means: what the client may read, and whether to try elsewhere.
//
// Concurrency: plain functions.
#ifndef PAGODA_SERVICES_ROUTER_ATTEMPT_ERROR_H_
#define PAGODA_SERVICES_ROUTER_ATTEMPT_ERROR_H_

#include "common/base/status.h"

namespace pagoda::router {

// The error without what only we may know: the transport's own messages name addresses.
Status PublicError(const Status& status);

// A placement's error, with the client's field if it is the client's.
Status PlacementError(const Status& status);

// Whether another worker might do better. `continues`: from tokens that were delivered, which a
// worker that says DATA_LOSS suspects to be wrong.
bool Retryable(const Status& status, bool continues);

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_ATTEMPT_ERROR_H_
