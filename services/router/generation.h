// One choice on its way: placed on a worker, its token stream turned into text, tried again on
// another worker while nothing has been delivered.
//
// Life of a generation:
//   1. Start: keys are made, a place is chosen and counted, the worker's stream is opened
//   2. token batches arrive; their text goes to the sink as it becomes certain
//   3. the stream ends: with a finish reason, the sink hears OnEnd
//   4. or with an error: before the first token another worker is tried (at most kMaxAttempts in
//      all, each counted); after it, or without another worker, the sink hears OnEnd with the error
//   Cancel closes the worker's stream, which frees its blocks within a step.
//
// It knows neither HTTP nor the gRPC server. No error names a worker's address.
//
// Concurrency: Cancel from any thread. The sink is called from one thread at a time, on gRPC's
// threads or inside Start, without locks held.
#ifndef PAGODA_SERVICES_ROUTER_GENERATION_H_
#define PAGODA_SERVICES_ROUTER_GENERATION_H_

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/text/detokenizer.h"
#include "pagoda/v1/types.pb.h"
#include "pagoda/v1/worker.pb.h"
#include "services/router/prompt_keys.h"
#include "services/router/request_plan.h"
#include "services/router/router_core.h"

namespace pagoda::router {

// Must not block.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  // New tokens and the text that became certain; either may be empty. `worker` sent them.
  virtual void OnTokens(std::span<const uint32_t> ids, const std::string& text,
                        const std::string& worker) = 0;
  // Once, last. With an OK status, `finish` is STOP or LENGTH.
  virtual void OnEnd(const Status& status, v1::FinishReason finish, const v1::Usage& usage) = 0;
};

class Generation final : public std::enable_shared_from_this<Generation> {
 public:
  // `core` outlives the generation. The sink may hear OnEnd before this returns.
  static std::shared_ptr<Generation> Start(RouterCore* core, RequestPlan plan,
                                           std::shared_ptr<GenerationSink> sink);

  // OnEnd follows with CANCELLED, unless it has already been called.
  void Cancel();

 private:
  Generation(RouterCore* core, RequestPlan plan, std::shared_ptr<GenerationSink> sink);

  void Attempt();
  void Call(const RegisteredWorker& worker);
  v1::WorkerGenerateRequest MakeRequest(const RegisteredWorker& worker) const;
  void OnMessage(const v1::WorkerGenerateResponse& message);
  void AbandonAttempt();
  void OnDone(Status status);
  Status EndStatus(const Status& status) const;
  void Deliver(const google::protobuf::RepeatedField<uint32_t>& ids);
  void End(const Status& status);
  bool cancelled() const;

  RouterCore* const core_;
  const RequestPlan plan_;
  const PromptKeys keys_;
  const std::set<uint32_t> stop_ids_;  // give no text

  // Touched only by the attempt that is running; one follows the other.
  std::shared_ptr<GenerationSink> sink_;
  text::Detokenizer detokenizer_;
  std::vector<uint32_t> output_ids_;  // delivered
  std::set<uint64_t> failed_;         // instances
  int attempts_ = 0;
  Status last_error_;
  std::string worker_;  // of this attempt
  uint64_t instance_id_ = 0;
  uint64_t ticket_ = 0;
  bool overrun_ = false;  // the worker sent what was not asked for
  v1::FinishReason finish_ = v1::FINISH_REASON_UNSPECIFIED;
  v1::Usage usage_;

  mutable Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  int ended_attempts_ ABSL_GUARDED_BY(mutex_) = 0;
  int abandoned_attempt_ ABSL_GUARDED_BY(mutex_) = 0;  // its call is to be cancelled
  std::shared_ptr<WorkerCall> call_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_GENERATION_H_
