// One HTTP call to /v1/chat/completions or /v1/completions: its generations, and their way into one
// whole response or one event stream. Choice c of prompt p has the index p * n + c.
//
// Headers go out with the first token, so that an error before it is a plain 4xx or 5xx. An error
// in mid-stream becomes an error event, and the stream ends without [DONE]. A client that goes away
// cancels every generation.
//
// Concurrency: one call is used by several gRPC threads at once; it guards itself.
#ifndef PAGODA_SERVICES_ROUTER_OPENAI_COMPLETION_CALL_H_
#define PAGODA_SERVICES_ROUTER_OPENAI_COMPLETION_CALL_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/http/responder.h"
#include "services/router/generation.h"
#include "services/router/openai/request_parser.h"
#include "services/router/openai/response_writer.h"

namespace pagoda::router::openai {

class CompletionCall final : public std::enable_shared_from_this<CompletionCall> {
 public:
  // Plans all prompts, then starts them. `core` outlives the call.
  static void Start(RouterCore* core, Api api, CompletionRequest request,
                    std::shared_ptr<http::Responder> responder);

 private:
  class Sink;

  CompletionCall(RouterCore* core, Api api, CompletionRequest request,
                 std::shared_ptr<http::Responder> responder);

  Status PlanAll();
  void Run();
  void OnTokens(size_t index, std::span<const uint32_t> ids, const std::string& text,
                const std::string& worker);
  void OnEnd(size_t index, const Status& status, v1::FinishReason finish, const v1::Usage& usage);
  void Cancel();
  // Ends the answer with an error, whichever way is still open.
  void FailLocked(const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  RouterCore* const core_;
  const Api api_;
  const CompletionRequest request_;
  const std::shared_ptr<http::Responder> responder_;
  std::vector<RequestPlan> plans_;                // moved into the generations
  std::unique_ptr<const ResponseWriter> writer_;  // set before the first generation starts

  Mutex mutex_;
  std::vector<Choice> choices_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> begun_ ABSL_GUARDED_BY(mutex_);  // per choice: its first event is written
  std::vector<std::shared_ptr<Generation>> generations_ ABSL_GUARDED_BY(mutex_);
  v1::Usage usage_ ABSL_GUARDED_BY(mutex_);
  std::string worker_ ABSL_GUARDED_BY(mutex_);  // sent the first token
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool streaming_ ABSL_GUARDED_BY(mutex_) = false;  // headers are out
  bool over_ ABSL_GUARDED_BY(mutex_) = false;       // the answer is complete, failed or abandoned
};

}  // namespace pagoda::router::openai

#endif  // PAGODA_SERVICES_ROUTER_OPENAI_COMPLETION_CALL_H_
