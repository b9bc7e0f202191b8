// The engine: one thread that turns requests into tokens.
//
//   step = schedule -> launch -> collect -> publish
//
// It alone owns the sequences, the block manager, the scheduler and the model runner, so none of
// them needs a lock. Its edges are bounded: requests, cancels and finished transfers come in
// through an EngineInbox; tokens go out through one TokenSink a request. A step never waits for a
// network, a disk or a client. It knows no gRPC and no text.
//
// Concurrency: Submit, Cancel, Wake, Drain, Stop and stats may be called from any thread;
// everything else runs on the engine thread (or, in tests, on the one thread that calls RunOnce).
#ifndef PAGODA_SERVICES_WORKER_ENGINE_H_
#define PAGODA_SERVICES_WORKER_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "services/worker/block_manager.h"
#include "services/worker/block_memory.h"
#include "services/worker/block_recheck.h"
#include "services/worker/engine_inbox.h"
#include "services/worker/engine_metrics.h"
#include "services/worker/generation_request.h"
#include "services/worker/kv_transfer.h"
#include "services/worker/model_runner.h"
#include "services/worker/prefill_rate.h"
#include "services/worker/scheduler.h"
#include "services/worker/step_plan.h"
#include "services/worker/store_patience.h"

namespace pagoda::worker {

// A consistent picture between two steps. A load report and /readyz read it.
struct EngineStats {
  uint64_t steps = 0;  // grows with every launched step: a peer can see a stuck engine
  int32_t running = 0;
  int32_t waiting = 0;      // not started or preempted
  int32_t free_blocks = 0;  // could be had at once: unused, or cached and unreferenced
  int32_t total_blocks = 0;
  int32_t max_step_seqs = 0;             // the largest batch so far, in sequences
  int32_t pending_prefill_tokens = 0;    // known tokens of live requests that are not computed yet
  double prefill_tokens_per_second = 0;  // moving average
};

class Engine {
 public:
  struct Options {
    uint32_t vocabulary_size = 0;
    int32_t max_model_len = 0;  // prompt and output tokens of a request
    int32_t num_blocks = 0;     // of the pool
    // Block size and batch limits. The engine sets max_loading_blocks: half of the pool.
    Scheduler::Options scheduler;
    // Requests that wait beside those that run: a queue longer than this only adds latency, and
    // its ids cost memory (256 prompts of 8,192 tokens are 8 MiB).
    int32_t max_waiting = 256;
    StorePatience store_patience;
    double prefill_tokens_per_second = 1000;  // first value, from the start-up self-test
    BlockRecheck::Options recheck;            // of loaded blocks
    bool poison_freed_blocks = false;         // fill freed blocks with 0xFF: tests and debug builds
  };

  // All pointers outlive the engine. `transfer` may be null: no store. With chunked prefill off,
  // max_num_batched_tokens bounds the length of requests.
  Engine(const Options& options, ModelRunner* runner, BlockMemory* memory, KvTransfer* transfer,
         EngineMetrics* metrics, Clock* clock);
  ~Engine();  // Stop
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Starts the engine thread.
  void Start();

  // Checks the request and hands it to the engine. After OK the sink hears OnFinish exactly once;
  // after an error never. Errors name the field, the value and the limit:
  //   INVALID_ARGUMENT    a field is wrong, or block_keys differ from the worker's
  //   OUT_OF_RANGE        the request could never fit into the pool
  //   RESOURCE_EXHAUSTED  the queue is full
  //   UNAVAILABLE         draining or stopped
  StatusOr<SequenceId> Submit(GenerationRequest request, std::shared_ptr<TokenSink> sink);

  // The request ends with kCancelled at the next step border. Unknown or ended ids are ignored.
  void Cancel(SequenceId id);

  // A sink that had no room has some again.
  void Wake();

  // No new requests from now on (UNAVAILABLE); those that are here run to their ends.
  void Drain();
  // Waits for them until `deadline`. False when some were still there.
  bool WaitUntilIdle(TimePoint deadline);

  // Ends every request with kError and UNAVAILABLE, and the thread. Blocks on their way to the
  // store get `push_grace` to arrive, so that another worker can load them. Idempotent.
  void Stop(Duration push_grace = Duration::zero());

  EngineStats stats() const;

  // Takes what the inbox holds (waiting for something until `idle_until` when there is nothing to
  // compute), then runs one step. False when no row was computed. For tests, instead of Start.
  bool RunOnce(TimePoint idle_until);

  // Between two calls of RunOnce, on the same thread. Error: INTERNAL.
  Status CheckIntegrity() const { return scheduler_.CheckIntegrity(); }

 private:
  struct Live;  // a sequence with its sink and what the engine counts for it

  void Run();
  // Input
  void TakeInput(EngineInbox::Input input);
  void Accept(NewRequest request);
  // Asks which of its blocks, from `first` on, the store holds.
  void AskStore(Sequence& sequence, int32_t first);
  void On(const LookupDone& event);
  void On(const BlockLoaded& event);
  void EndCancelledAndExpired(const std::set<SequenceId>& cancels, TimePoint now);
  // A step
  void PoisonFreed();
  void StartLoads(const Scheduler::Step& step, TimePoint now);
  // Of computing that many blocks.
  Duration PredictedTime(size_t blocks) const;
  void CancelAbandonedLoads();
  Status Compute(const Scheduler::Step& step);
  void Publish(const Scheduler::Step& step);
  void Push(const std::vector<Scheduler::SequenceBlock>& completed);
  void Deliver(Sequence& sequence, const SampledToken& sampled, TimePoint now);
  // Blocks that were found wrong, or may be: engine_quarantine.cc
  void EndRecheck(bool computed);
  void OnMismatch(const BlockRecheck::Result& result);
  void EndNonFinite(Sequence& sequence);
  void QuarantineSuspects();
  void Quarantine(const BlockRef& first, bool wrong);
  void Finish(Sequence& sequence, FinishReason reason, Status status);
  void CountStep(const Scheduler::Step& step);
  void UpdateStats();
  TimePoint NextDeadline() const;
  Live& LiveOf(const Sequence& sequence) { return *live_.at(sequence.id()); }

  const Options options_;
  ModelRunner* const runner_;
  BlockMemory* const memory_;
  KvTransfer* const transfer_;
  EngineMetrics* const metrics_;
  Clock* const clock_;

  EngineInbox inbox_;
  BlockManager blocks_;
  Scheduler scheduler_;
  BlockRecheck recheck_;
  std::vector<BlockRef> suspects_;  // of this step: the first loaded block of a non-finite sequence
  PrefillRate prefill_rate_;
  StepPlan plan_;
  StepResult result_;
  std::unordered_map<SequenceId, std::unique_ptr<Live>> live_;
  bool busy_ = false;  // the last step did something: do not wait before the next

  mutable Mutex mutex_;
  CondVar idle_;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  int32_t num_live_ ABSL_GUARDED_BY(mutex_) = 0;  // accepted and not ended
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  EngineStats stats_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_ENGINE_H_
