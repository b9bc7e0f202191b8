// Moves blocks between this worker's pool and a BlockStore: pushes what was computed, asks for and
// loads what others computed. Any failure is a counted miss; nothing here can fail a request or
// delay a step.
//
// - Push copies the block (with its checksum) into bounded staging at once, so a slow store
//   holds no block of the pool; when staging is full, the push is dropped and counted.
// - Load writes into blocks that the engine keeps LOADING until their BlockLoaded event: whole or
//   not at all. The header is checked against what was asked for before a byte is taken (R8); a
//   foreign block is refused, and reported to the store. So is, unreported, what was found wrong
//   before: by its key or its producer.
// - Calls go out on a thread of its own, because a store may do bounded work on the caller's.
// It decides neither what to load nor how long to wait.
//
// Concurrency: StoreAnswers, Lookup, Load, CancelLoad and Push on the engine thread; events come on
// any thread; Stop once, after the last of those.
#ifndef PAGODA_SERVICES_WORKER_KV_TRANSFER_H_
#define PAGODA_SERVICES_WORKER_KV_TRANSFER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/executor.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/kv/block_store.h"
#include "common/kv/breaker_store.h"
#include "services/worker/block_memory.h"
#include "services/worker/generation_request.h"
#include "services/worker/refused_blocks.h"
#include "services/worker/staging_buffer.h"
#include "services/worker/transfer_event.h"

namespace pagoda::worker {

// The counters of what a store does for this worker.
class KvTransferMetrics {
 public:
  explicit KvTransferMetrics(Metrics* metrics);

  // kv_load_blocks_total{result}: loaded, missing, corrupt, refused, failed
  prometheus::Counter& Load(GetOutcome outcome) { return *load_[static_cast<size_t>(outcome)]; }
  // kv_push_blocks_total{result}: stored, have, divergent, no_room, corrupt, failed; and dropped
  prometheus::Counter& Push(PutOutcome outcome) { return *push_[static_cast<size_t>(outcome)]; }
  prometheus::Counter& PushDropped() { return *push_dropped_; }
  // kv_deadline_misses_total{call}: lookup, load, push; one a call
  prometheus::Counter& LookupMissedDeadline() { return *lookup_missed_; }
  prometheus::Counter& LoadMissedDeadline() { return *load_missed_; }
  prometheus::Counter& PushMissedDeadline() { return *push_missed_; }
  // Copied, and not answered yet.
  prometheus::Gauge& PushPending() { return *push_pending_; }

 private:
  std::array<prometheus::Counter*, 5> load_;
  std::array<prometheus::Counter*, 6> push_;
  prometheus::Counter* push_dropped_;
  prometheus::Counter* lookup_missed_;
  prometheus::Counter* load_missed_;
  prometheus::Counter* push_missed_;
  prometheus::Gauge* push_pending_;
};

class KvTransfer {
 public:
  struct Options {
    bool load = true;  // --kv-load auto or load; recompute: false
    bool push = true;  // --kv-offload write_through; off: false
    Space space;
    uint64_t weight_epoch = 0;
    uint64_t producer_instance = 0;
    std::string producer_build;
    uint32_t block_tokens = 32;
    // Some 64 blocks of a small model: two steps' worth of prefill, so a healthy store drops
    // nothing.
    size_t max_staging_bytes = size_t{64} << 20;
    // A push nobody waits for; it only must not hold its staging for ever.
    Duration put_timeout = std::chrono::seconds(10);
    // Calls that wait for the calling thread. A store that blocks it fills this, and then all
    // misses.
    size_t max_queued_calls = 1024;
    // What `store` is, when it is a breaker: while it is open nothing is asked or copied for it.
    const BreakerStore* breaker = nullptr;
  };
  using EventHandler = std::function<void(TransferEvent)>;

  struct LoadBlock {
    BlockRef ref;
    Namespace name_space;
    BlockId block = kNoBlock;
  };
  using PushBlock = LoadBlock;
  // Counts the blocks of one request that the store has acknowledged.
  using Acknowledged = std::shared_ptr<std::atomic<uint32_t>>;

  // `store`, `memory` and `clock` outlive this. Blocks over kMaxPayloadBytes are an
  // INVALID_ARGUMENT.
  static StatusOr<std::unique_ptr<KvTransfer>> Make(const Options& options, BlockStore* store,
                                                    BlockMemory* memory, Metrics* metrics,
                                                    Clock* clock);
  ~KvTransfer();  // Stop

  bool loads() const { return options_.load; }
  bool pushes() const { return options_.push; }

  // Whether a call to the store may get more than a refusal. While it may not, asking sees to it
  // that the breaker tries again in time.
  bool StoreAnswers();

  // Before the first call. The handler must not block; it gets one event a lookup, and one an
  // entry.
  void SetEventHandler(EventHandler handler);

  // Asks which of `refs` the store holds; refs[0] is block `first_index` of the sequence. At most
  // kMaxBlocksPerCall are asked for.
  void Lookup(SequenceId sequence, const GenerationRequest& request, std::vector<BlockRef> refs,
              int32_t first_index, TimePoint deadline);

  void Load(LoadId load, const GenerationRequest& request, std::vector<LoadBlock> blocks,
            TimePoint deadline);

  // Nobody wants it any more. Its events still come, when the writer has let go.
  void CancelLoad(LoadId load);

  // REQUIRES: the blocks are READY and computed here.
  void Push(const GenerationRequest& request, const std::vector<PushBlock>& blocks,
            Acknowledged acknowledged);

  // A block that is wrong, or may be: it is not loaded again, and the store is told (after what was
  // pushed before).
  void RefuseBlock(CorruptReport report);

  // Nothing that this instance computed is loaded again.
  void RefuseProducer(uint64_t instance) { refused_.AddProducer(instance); }

  // Waits until the store has answered every call, at most until `deadline`.
  void WaitUntilIdle(TimePoint deadline);

  // Calls off what can be, waits until the store has let go of everything, and ends the thread.
  void Stop();

 private:
  class Sink;
  KvTransfer(const Options& options, BlockStore* store, BlockMemory* memory, Metrics* metrics,
             Clock* clock);

  CallContext ContextFor(const GenerationRequest& request, TimePoint deadline) const;
  PutBlock MakePut(const GenerationRequest& request, const PushBlock& block,
                   std::shared_ptr<std::byte> staged);
  // Runs `call` on the calling thread; false: it will not run.
  bool TryCall(std::function<void()> call);
  void CallEnded();
  // An alarm: of two workers one computes wrongly. One line a minute at most.
  void LogDivergent(const BlockKey& key);
  void LoadEnded(LoadId load);

  const Options options_;
  BlockStore* const store_;
  BlockMemory* const memory_;
  Clock* const clock_;
  KvTransferMetrics metrics_;
  StagingBuffer staging_;
  RefusedBlocks refused_;
  EventHandler on_event_;

  Mutex mutex_;
  CondVar none_open_;
  int open_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<LoadId, std::stop_source> loads_ ABSL_GUARDED_BY(mutex_);
  TimePoint next_divergent_log_ ABSL_GUARDED_BY(mutex_) = TimePoint::min();
  std::stop_source stop_;  // ends every lookup and push
  Executor caller_;        // last: its tasks use the rest
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_KV_TRANSFER_H_
