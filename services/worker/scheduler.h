// Decides what the next step computes: continuous batching over a fixed pool of blocks.
//
// Rules
//   Order      higher priority first, then the older. Decodes go before prefill chunks; without
//              chunked prefill whole prompts go first, alone if need be.
//   Compute    goes on at a sequence's frontier; a chunk ends before the next READY or LOADING
//              block (block_table.h). A sequence whose frontier lies in a LOADING block waits until
//              its load_deadline, then gives the load up: a failed or late load only means compute.
//   Sharing    at a block border the prefix index is asked first. When another sequence computes
//              the same block in this step, or has LOADING what this one would load, this one
//              waits. Nothing is remembered between steps: if the other is cancelled, preempted or
//              gets nothing, this one takes over at the last published block.
//   Admission  strictly in order (only who waits for the store's answer is overtaken), when the
//              blocks for its tokens and the next kSlackBlocks fit beside what running sequences
//              still need for theirs. After a preemption the running ones' next kSlackBlocks count
//              as well: a resume is paid for by that much progress of everyone (no ping-pong).
//   Preemption when a sequence needs a block and none is left, the last in order loses all of its
//              blocks and starts again (most are usually still found by key). The last one itself
//              just waits.
// It launches nothing, knows no store, and sees token values only through keys.
//
// Concurrency: the engine thread only.
#ifndef PAGODA_SERVICES_WORKER_SCHEDULER_H_
#define PAGODA_SERVICES_WORKER_SCHEDULER_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "services/worker/block_manager.h"
#include "services/worker/load_table.h"
#include "services/worker/sequence.h"

namespace pagoda::worker {

class Scheduler {
 public:
  // What a sequence must be able to go on for once it is admitted (design: 4 blocks of tokens).
  static constexpr int32_t kSlackBlocks = 4;

  struct Options {
    int32_t block_tokens = 32;
    int32_t max_num_batched_tokens = 512;  // rows of a step: bounds its activations and its time
    int32_t max_num_seqs = 64;             // running at once: bounds logits and metadata
    bool enable_chunked_prefill = true;    // off: only to be measured against
    // Blocks that may be LOADING at once, so that slow loads cannot take the pool from compute.
    int32_t max_loading_blocks = 256;
  };

  // Rows [start, start + count) of a sequence's tokens.
  struct Chunk {
    Sequence* sequence = nullptr;
    int32_t start = 0;
    int32_t count = 0;
    bool samples = false;  // the last row is the last known token: a token follows
  };
  // A load to start, into fresh blocks, for the sequence that was just admitted.
  struct LoadOrder {
    LoadId id{};
    Sequence* sequence = nullptr;
    std::vector<LoadEntry> entries;
  };
  struct Step {
    std::vector<Chunk> chunks;
    std::vector<LoadOrder> loads;
    int32_t num_rows = 0;
    std::vector<Sequence*> preempted;  // their blocks are gone, and what was known of the store's
  };
  // Block `block_index` of a sequence.
  struct SequenceBlock {
    Sequence* sequence = nullptr;
    int32_t block_index = 0;
  };

  Scheduler(const Options& options, BlockManager* blocks);

  // Takes a new sequence into the queue. It stays the caller's and must outlive its Remove.
  void Add(Sequence* sequence);

  // Takes a sequence out, in whatever state, and gives its blocks back.
  void Remove(Sequence* sequence);

  // Plans a step. The result is valid until the next call; it may be empty. Every non-empty step
  // ends with OnComputed, or with Remove for each of its sequences.
  const Step& Schedule(TimePoint now);

  // The rows of the step are computed. Moves frontiers and publishes blocks. Sampled tokens are
  // appended by the caller, afterwards. Returns the blocks that were computed here and are now in
  // the prefix index: to be pushed.
  std::vector<SequenceBlock> OnComputed(const Step& step);

  // The transfer has let go of an entry of a LoadOrder; `ok`: all of its bytes are there, computed
  // by `producer`. Once an entry. Returns the block when it serves its sequence from now on.
  std::optional<SequenceBlock> OnBlockLoaded(LoadId load, int32_t entry, bool ok,
                                             BlockSource source, uint64_t producer = 0);

  // This block of this key must not be used any more, nor what was computed from it: takes them out
  // of the prefix index. Each holder has to be restarted or removed before the next Schedule.
  // REQUIRES: not between Schedule and OnComputed.
  struct Quarantined {
    std::vector<BlockManager::Unindexed> blocks;
    std::vector<Sequence*> holders;  // running sequences that hold some of it
  };
  Quarantined Quarantine(const BlockRef& first);

  // The sequence gives back all of its blocks and begins again, without what the store told about
  // it. REQUIRES: as Quarantine.
  void Restart(Sequence& sequence);

  // After Schedule: whether `rows` of one more slice delay no request: nobody waits to be admitted
  // or computes a prompt, and the step has room.
  bool HasSpareRows(int32_t rows) const;

  // Loads that nobody waits for any more since the last call; to be called off.
  std::vector<LoadId> TakeAbandonedLoads() { return std::exchange(abandoned_, {}); }
  // Sequences whose prompt became complete since the last call.
  std::vector<Sequence*> TakeCompletedPrompts() { return std::exchange(completed_prompts_, {}); }

  // In order.
  const std::vector<Sequence*>& running() const { return running_; }
  const std::vector<Sequence*>& waiting() const { return waiting_; }

  // The earliest time after the last Schedule at which a sequence goes on without an event.
  TimePoint NextDeadline() const;

  // Checks references, states and queues of every sequence against the block manager. Error:
  // INTERNAL.
  Status CheckIntegrity() const;

 private:
  void PlanDecodes();
  void PlanPrefills();
  void Admit();
  bool Fits(const Sequence& sequence) const;
  void StartLoad(Sequence& sequence);
  void NoteLoading(const Sequence& sequence);
  void PlanChunk(Sequence& sequence);
  bool MayCompute(Sequence& sequence);
  int32_t HoldBlocks(Sequence& sequence, int32_t start, int32_t end);
  bool HoldBlock(Sequence& sequence, int32_t index);
  void MatchAtFrontier(Sequence& sequence);
  void Advance(Sequence& sequence, int32_t position);
  void PublishReady(Sequence& sequence);
  void Preempt(Sequence& sequence);
  void BackToWaiting(Sequence& sequence);
  void AbandonLoad(Sequence& sequence);
  void ReleaseBlocks(Sequence& sequence);
  int32_t BlocksOwed(const Sequence& sequence, int32_t slack_tokens) const;

  const Options options_;
  BlockManager* const blocks_;
  LoadTable loads_;
  std::vector<Sequence*> running_;
  std::vector<Sequence*> waiting_;
  Step step_;
  TimePoint now_;                               // of this step
  int32_t budget_ = 0;                          // rows left in this step
  absl::flat_hash_set<BlockKey> planned_keys_;  // blocks that this step computes, whole or in part
  absl::flat_hash_set<BlockKey> loading_keys_;  // blocks that loads may still bring
  std::vector<SequenceBlock> completed_;
  std::vector<LoadId> abandoned_;
  std::vector<Sequence*> completed_prompts_;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_SCHEDULER_H_
