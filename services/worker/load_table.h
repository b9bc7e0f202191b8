// The blocks that transfers are writing into. A load holds one reference to each of its blocks
// until the writer has let go of it, beside the table's own: so a sequence can abandon a load at
// any time, and the block still comes back to the pool only when nobody writes into it (R1, R3).
//
// Concurrency: the engine thread only.
#ifndef PAGODA_SERVICES_WORKER_LOAD_TABLE_H_
#define PAGODA_SERVICES_WORKER_LOAD_TABLE_H_

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "services/worker/block_manager.h"
#include "services/worker/sequence.h"

namespace pagoda::worker {

struct LoadEntry {
  int32_t block_index = 0;  // in the sequence's table
  BlockId block = kNoBlock;
};

class LoadTable {
 public:
  // What became of one entry.
  struct Settled {
    Sequence* sequence = nullptr;  // null: abandoned
    LoadEntry entry;
    bool last = false;  // the whole load is settled; its id means nothing from now on
  };

  explicit LoadTable(BlockManager* blocks) : blocks_(blocks) {}

  // Takes a reference to each block. REQUIRES: at least one entry.
  LoadId Start(Sequence* sequence, const std::vector<LoadEntry>& entries);

  // The sequence no longer wants it.
  void Abandon(LoadId load);

  // The writer has let go of entry `index`: gives its reference back. REQUIRES: once an entry.
  Settled Settle(LoadId load, int32_t index);

  // Blocks that are being written into, also those nobody wants any more.
  int32_t num_blocks() const { return num_blocks_; }
  // Every reference that loads hold.
  std::vector<BlockId> HeldBlocks() const;

 private:
  struct Load {
    Sequence* sequence = nullptr;
    std::vector<LoadEntry> entries;  // a settled one has kNoBlock
    int32_t open = 0;
  };

  BlockManager* const blocks_;
  std::unordered_map<LoadId, Load> loads_;
  uint64_t next_id_ = 1;
  int32_t num_blocks_ = 0;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_LOAD_TABLE_H_
