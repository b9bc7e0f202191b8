// The Worker service: translates between gRPC and the engine, and decides nothing.
//
// The life of one Generate call:
//   1. The request is translated and submitted; an error ends the call before any message.
//   2. The engine's thread puts tokens into the call; a message carries all that came while the
//      last one was being written.
//   3. Tokens that the client does not take pile up to kMaxBufferedTokens; then the engine
//      pauses this sequence until the client reads on.
//   4. The client's cancel, or its going away, cancels the sequence.
//   5. The last message carries the finish reason and the usage; an error becomes the
//      call's status.
//
// Concurrency: gRPC's threads and the engine's thread meet inside a call, under its mutex.
#ifndef PAGODA_SERVICES_WORKER_GENERATE_SERVICE_H_
#define PAGODA_SERVICES_WORKER_GENERATE_SERVICE_H_

#include "pagoda/v1/worker.grpc.pb.h"
#include "services/worker/engine.h"
#include "services/worker/request_translation.h"

namespace pagoda::worker {

// A reader that lags this far behind is slower than decoding by minutes, not by jitter.
inline constexpr size_t kMaxBufferedTokens = 1024;

class GenerateService final : public v1::Worker::CallbackService {
 public:
  // `engine` outlives the service. `info` is what GetModelInfo answers.
  GenerateService(Engine* engine, WorkerModel model, v1::GetModelInfoResponse info);

  grpc::ServerWriteReactor<v1::WorkerGenerateResponse>* Generate(
      grpc::CallbackServerContext* context, const v1::WorkerGenerateRequest* request) override;

  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context,
                                         const v1::GetModelInfoRequest* request,
                                         v1::GetModelInfoResponse* response) override;

 private:
  Engine* const engine_;
  const WorkerModel model_;
  const v1::GetModelInfoResponse info_;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_GENERATE_SERVICE_H_
