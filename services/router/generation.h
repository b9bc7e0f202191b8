// One choice on its way: placed on a worker, its token stream turned into text, moved to another
// worker when its worker dies, hangs or drains.
//
// Life of a generation:
//   1. Start: keys are made, a place is chosen and counted, the worker's stream is opened
//   2. token batches arrive; their text goes to the sink as it becomes certain: a stop string is
//      found before anything of it was given out, and ends the worker's stream
//   3. the stream ends: with a finish reason, the sink hears OnEnd
//   4. or it breaks, its worker hangs, or it passes a limit of GenerationLimits (Tick cancels it):
//      - before the first token: another worker is tried, kMaxAttempts in all; without one the sink
//        hears OnEnd with the error at once, so that the client may try another router
//      - after it: the same request with the delivered tokens as output_ids goes to another worker
//        of equal space, kMaxResumes times; without one it waits up to `resume_wait` for one to
//        come. Tokens depend on the request alone, and text that is held back (half a character,
//        the start of a stop string) stays here, so the client sees no seam.
//      A worker that drains may end the stream with UNAVAILABLE; the request moves as in 4, and it
//      is not counted as a failure (kMaxHandovers). Nor is a worker whose KV pool is too small
//      (OUT_OF_RANGE). An instance that failed is not asked again, and a worker that the client
//      named is left once tokens were delivered. A request that workers died of (killer_table.h) is
//      refused.
//   5. nothing can continue: the sink hears OnEnd with the error
//   Cancel closes the worker's stream, which frees its blocks within a step.
//
// It knows neither HTTP nor the gRPC server. No error names a worker's address.
//
// Concurrency: Cancel and Tick from any thread. The sink is called from one thread at a time, on
// gRPC's threads, inside Start or inside Tick, without locks held.
#ifndef PAGODA_SERVICES_ROUTER_GENERATION_H_
#define PAGODA_SERVICES_ROUTER_GENERATION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/text/detokenizer.h"
#include "common/text/stop_strings.h"
#include "pagoda/v1/types.pb.h"
#include "pagoda/v1/worker.pb.h"
#include "services/router/killer_table.h"
#include "services/router/prompt_keys.h"
#include "services/router/request_plan.h"
#include "services/router/router_core.h"

namespace pagoda::router {

// Workers on which a request may be tried before its first token: one that fails everywhere is not
// a worker's fault.
inline constexpr int kMaxAttempts = 3;
// Times that an answer which has begun may be continued on another worker.
inline constexpr int kMaxResumes = 2;
// Times that workers which drain may hand a request over; a rolling restart of many workers is no
// fault of the request's, so these count against neither of the above.
inline constexpr int kMaxHandovers = 8;

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

  // OnEnd follows with `why`, unless it has already been called. A second call changes nothing.
  void Cancel(const Status& why = absl::CancelledError("cancelled"));

  // The monitor's: leaves a worker that hangs, keeps the limits, looks for a worker if it waits.
  void Tick(const std::map<uint64_t, Hang>& hanging);

 private:
  // What runs now, as Cancel and Tick see it.
  struct Running {
    int attempt = 0;  // 0: none
    uint64_t instance_id = 0;
    TimePoint since{};  // its start, then its last tokens
    Duration limit{};
    std::shared_ptr<WorkerCall> call;
    Status abandoned;  // why its call is to be cancelled
  };

  Generation(RouterCore* core, RequestPlan plan, std::shared_ptr<GenerationSink> sink);

  bool resuming() const { return !output_ids_.empty(); }
  std::optional<Status> WhyNoAttempt() const;
  void Attempt();
  StatusOr<placement::Placed> Place();
  void WaitForWorker();
  void Call(const placement::Decision& decision);
  v1::WorkerGenerateRequest MakeRequest() const;
  void OnMessage(const v1::WorkerGenerateResponse& message);
  void Abandon(Status why);
  void OnDone(Status stream_status, bool reached);
  Status EndStatus(const Status& stream_status, const Status& abandoned);
  Status Complete();
  void CloseBooks(bool broken);
  void Deliver(std::span<const uint32_t> ids);
  std::string Text(uint32_t id);
  void End(const Status& status);
  Status cancelled() const;  // OK: it is not

  RouterCore* const core_;
  const RequestPlan plan_;
  const RequestFingerprint fingerprint_;
  const std::set<uint32_t> stop_ids_;  // give no text

  // Touched only by the attempt that is running; one follows the other.
  std::shared_ptr<GenerationSink> sink_;
  text::Detokenizer detokenizer_;
  text::StopStrings stop_strings_;
  PromptKeys keys_;  // of the prompt and the first keyed_outputs_ of output_ids_
  size_t keyed_outputs_ = 0;
  std::vector<uint32_t> output_ids_;  // delivered
  std::vector<std::string> workers_;  // that delivered, in order
  std::optional<Space> space_;        // of the worker that delivered first
  std::set<uint64_t> failed_;         // instances
  int attempts_ = 0;                  // begun
  int charged_before_ = 0;            // attempts against kMaxAttempts
  int charged_resumes_ = 0;           // attempts against kMaxResumes
  int handovers_ = 0;
  TimePoint wait_until_ = TimePoint::max();  // while no worker is found
  Status last_error_;
  std::shared_ptr<const RegisteredWorker> worker_;  // of this attempt
  uint64_t instance_id_ = 0;
  uint64_t ticket_ = 0;
  uint32_t resumed_ = 0;  // output_ids that this attempt was given
  bool overrun_ = false;  // the worker sent what was not asked for
  v1::FinishReason finish_ = v1::FINISH_REASON_UNSPECIFIED;
  v1::Usage usage_;

  mutable Mutex mutex_;
  Status cancelled_ ABSL_GUARDED_BY(mutex_);      // why; OK: it is not
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;  // for a worker: the next Tick looks for one
  Running running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_GENERATION_H_
