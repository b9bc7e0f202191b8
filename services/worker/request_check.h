// Whether a request can be served at all. What passes here always fits into an empty worker.
//
// Concurrency: plain functions, any thread.
#ifndef PAGODA_SERVICES_WORKER_REQUEST_CHECK_H_
#define PAGODA_SERVICES_WORKER_REQUEST_CHECK_H_

#include <cstdint>
#include <span>

#include "common/base/status.h"
#include "services/worker/generation_request.h"

namespace pagoda::worker {

struct RequestLimits {
  uint32_t vocabulary_size = 0;
  int32_t max_model_len = 0;  // prompt and output
  int32_t block_tokens = 0;
  int32_t num_blocks = 0;
  // Without chunked prefill all of a sequence must fit into one step; 0: no such limit.
  int32_t max_prefill_tokens = 0;
};

// Errors name the field, its value and the limit:
//   INVALID_ARGUMENT    prompt_ids, output_ids, max_tokens, sampling or penalties
//   OUT_OF_RANGE        the pool (or, without chunked prefill, a step) could never hold it
Status CheckRequest(const GenerationRequest& request, const RequestLimits& limits);

// The keys that came with a request (count and last one) against ours. Error: INVALID_ARGUMENT.
Status CheckBlockKeys(const GenerationRequest& request, std::span<const BlockRef> ours);

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_REQUEST_CHECK_H_
