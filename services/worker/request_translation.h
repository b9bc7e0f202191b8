// Between the Worker service's messages and the engine's plain data.
//
// Concurrency: plain functions; a WorkerModel is immutable.
#ifndef PAGODA_SERVICES_WORKER_REQUEST_TRANSLATION_H_
#define PAGODA_SERVICES_WORKER_REQUEST_TRANSLATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/kv/block_key.h"
#include "pagoda/v1/worker.pb.h"
#include "services/worker/generation_request.h"

namespace pagoda::worker {

// What a worker serves for all of its life.
struct WorkerModel {
  Space space;
  uint64_t weight_epoch = 0;
  std::vector<TokenId> stop_ids;  // the model's own, unless a request ignores them
};

// What depends on the model is the engine's to check.
// Errors: INVALID_ARGUMENT naming field, value and limit; FAILED_PRECONDITION for another space;
// UNIMPLEMENTED naming a field that asks for what is not built yet.
StatusOr<GenerationRequest> FromProto(const v1::WorkerGenerateRequest& message,
                                      const WorkerModel& model);

void FillUsage(const GenerationUsage& from, v1::Usage& to);

// The last message of a stream that ended well.
void FillFinish(const GenerationResult& result, v1::WorkerGenerateResponse& message);

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_REQUEST_TRANSLATION_H_
