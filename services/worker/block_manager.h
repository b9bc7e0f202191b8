// Who holds which physical block, and which blocks can be found again by key. It knows ids and
// hashes, never tensors and never tokens.
//
// A block is in one of three places:
//   free      nobody needs its bytes
//   held      referenced: by block tables (also of several sequences), or by a transfer
//   cached    unreferenced, but in the prefix index: found by key until its space is needed
//
// The prefix index holds a block only while it holds all ancestors. It is built so that whoever
// holds an indexed block holds its ancestors too (Publish gives a duplicate back for the indexed
// one), hence every cached block can be evicted, leaves first: among the leaves the least recently
// used goes.
//
// Concurrency: the engine thread only.
#ifndef PAGODA_SERVICES_WORKER_BLOCK_MANAGER_H_
#define PAGODA_SERVICES_WORKER_BLOCK_MANAGER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"
#include "common/kv/block_key.h"
#include "services/worker/block_table.h"

namespace pagoda::worker {

class BlockManager {
 public:
  explicit BlockManager(int32_t num_blocks);

  int32_t num_blocks() const { return static_cast<int32_t>(blocks_.size()); }
  // Blocks that Allocate can give: free and cached ones.
  int32_t num_available() const { return static_cast<int32_t>(free_.size()) + num_cached_; }
  int32_t num_indexed() const { return static_cast<int32_t>(index_.size()); }

  // A block with one reference and unspecified bytes; evicts when none is free. None when every
  // block is held.
  std::optional<BlockId> Allocate();

  // One more reference to a held block.
  void Retain(BlockId block);

  // One reference less. The last one leaves the block cached if it is indexed, else free. Who gives
  // back a prefix goes from its deepest block to its first, so that the deepest is the oldest.
  void Release(BlockId block);

  // The indexed block of this key with one more reference; none when it is not indexed.
  std::optional<BlockId> Find(const BlockKey& key);

  // How many leading keys are indexed, and how many of those blocks are cached. Neither pins nor
  // touches.
  struct Probe {
    int32_t matched = 0;
    int32_t cached = 0;
  };
  Probe ProbePrefix(std::span<const BlockRef> refs) const;

  // Puts a block that the caller holds, and whose bytes are final, into the index. `parent` is the
  // block before it (kNoBlock for the first), indexed and held by the caller as well. When the key
  // is already there, the caller's reference moves to the indexed block, and `block` is released.
  // Returns the block to use from now on.
  BlockId Publish(BlockId block, const BlockKey& key, BlockId parent);

  // Takes the indexed block of this key and everything below it out of the index: nobody will find
  // them again; those that are held stay so until their last reference. Nobody may go on publishing
  // below a block that was taken out. Returns what was taken out, nothing when the key is not
  // indexed.
  struct Unindexed {
    BlockKey key;
    std::optional<uint64_t> producer;
  };
  std::vector<Unindexed> Unindex(const BlockKey& key);

  // Who computed a block that was loaded; none for one that was computed here. Forgotten when the
  // block is freed. REQUIRES: the block is held.
  void SetProducer(BlockId block, uint64_t producer);
  std::optional<uint64_t> producer(BlockId block) const { return at(block).producer; }

  // Blocks whose bytes nobody needs any more since the last call, some of which may have been
  // allocated again. Whoever poisons them does it before anything is written.
  std::vector<BlockId> TakeFreed() { return std::exchange(freed_, {}); }

  int32_t references(BlockId block) const { return at(block).references; }

  // Checks every rule above against the whole state. Errors: INTERNAL naming the block.
  Status CheckIntegrity() const;

 private:
  struct Block {
    int32_t references = 0;
    bool indexed = false;
    BlockKey key;               // when indexed
    BlockId parent = kNoBlock;  // when indexed; kNoBlock for a first block
    int32_t children = 0;       // indexed blocks whose parent this is
    uint64_t last_use = 0;      // when it was last given back
    std::optional<uint64_t> producer;
  };

  const Block& at(BlockId block) const { return blocks_[static_cast<int32_t>(block)]; }
  Block& at(BlockId block) { return blocks_[static_cast<int32_t>(block)]; }
  bool IsEvictable(const Block& block) const {
    return block.indexed && block.references == 0 && block.children == 0;
  }
  void EvictOldestLeaf();
  bool IsBelow(BlockId block, BlockId ancestor) const;
  void Free(BlockId block);

  std::vector<Block> blocks_;
  std::vector<BlockId> free_;
  std::vector<BlockId> freed_;
  absl::flat_hash_map<BlockKey, BlockId> index_;
  std::set<std::pair<uint64_t, BlockId>> leaves_;  // evictable, oldest first
  int32_t num_cached_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_BLOCK_MANAGER_H_
