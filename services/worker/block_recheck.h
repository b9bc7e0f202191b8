// Computes a few of the loaded blocks again and compares the bytes: whoever made a block with the
// right checksum may still have made the wrong bytes, and nothing else would ever show it.
//
// A loaded block is chosen with the probability 1 / one_in, and waits until a step has rows left
// that nobody could use. Then the whole of it happens inside that one step:
//   1. TryStart finds the block and those before it by key, takes a reference to each, and takes
//      one block of the pool to compute into.
//   2. AppendTo adds its rows to the plan. They sample nothing.
//   3. Finish compares and gives every block back.
// So between two steps a recheck holds no block, and it can preempt nobody, publish nothing and be
// seen by no client. What it costs: such a step has up to block_tokens more rows, which the
// decodes beside it wait for; when no block is free, the least recently used cached one makes way.
// What cannot be done in its turn (a block was evicted, every block is held, too many wait) is
// dropped.
//
// The blocks before it are read as they lie in the pool. So unequal bytes say that this block is
// wrong or one of the loaded ones before it; equal bytes say nothing about those.
//
// Concurrency: the engine thread only.
#ifndef PAGODA_SERVICES_WORKER_BLOCK_RECHECK_H_
#define PAGODA_SERVICES_WORKER_BLOCK_RECHECK_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "services/worker/block_manager.h"
#include "services/worker/block_memory.h"
#include "services/worker/block_table.h"
#include "services/worker/sequence.h"
#include "services/worker/step_plan.h"

namespace pagoda::worker {

class BlockRecheck {
 public:
  // Each waiting one keeps a copy of its prefix's token ids and refs: some 300 KiB at 8,192 tokens.
  static constexpr size_t kMaxWaiting = 16;

  struct Options {
    uint32_t one_in = 0;  // 0: never
    uint64_t seed = 0;    // of the choice
  };

  enum class Outcome : uint8_t { kEqual, kDifferent, kDropped };

  struct Result {
    Outcome outcome = Outcome::kDropped;
    std::string request_id;           // who loaded the block
    std::vector<BlockRef> refs;       // the block is the last of them
    std::vector<uint64_t> producers;  // of the loaded blocks among refs; the block's own is last
    int32_t first_loaded = 0;         // the first of refs that was loaded
  };

  BlockRecheck(const Options& options, BlockManager* blocks, BlockMemory* memory)
      : options_(options), blocks_(blocks), memory_(memory), random_(options.seed) {}

  // Block `index` of the sequence was loaded; it may be chosen.
  void OnLoaded(const Sequence& sequence, int32_t index);

  // Whether one was started. REQUIRES: none is running. The rows it will need: the block's tokens.
  bool TryStart();
  bool running() const { return table_.has_value(); }
  void AppendTo(StepPlan& plan) const;
  // REQUIRES: running(). `computed`: the plan was run.
  Result Finish(bool computed);

  bool waiting() const { return !waiting_.empty(); }
  // How many were dropped without having been started, since the last call.
  int32_t TakeDropped() { return std::exchange(dropped_, 0); }

 private:
  struct Chosen {
    std::string request_id;
    std::vector<TokenId> tokens;
    std::vector<BlockRef> refs;
  };

  bool Hold(const Chosen& chosen);
  void Release();

  const Options options_;
  BlockManager* const blocks_;
  BlockMemory* const memory_;
  std::mt19937_64 random_;
  std::deque<Chosen> waiting_;
  int32_t dropped_ = 0;
  // The running one.
  Chosen current_;
  BlockId loaded_ = kNoBlock;        // what its bytes are compared with
  std::optional<BlockTable> table_;  // the blocks before it, and the one that is computed
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_BLOCK_RECHECK_H_
