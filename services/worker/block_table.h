// The blocks of one sequence: which physical block holds its tokens [i * block_tokens, +
// block_tokens), and how far each is. Pure bookkeeping: it owns no reference (block_manager.h
// counts them) and knows no tokens.
//
// The frontier is the first token that is neither computed nor inside a READY block. Compute always
// goes on there, so everything before it is valid; behind it blocks may be READY (loaded) or
// LOADING, with EMPTY ones between them (holes).
//
// Concurrency: the engine thread only.
#ifndef PAGODA_SERVICES_WORKER_BLOCK_TABLE_H_
#define PAGODA_SERVICES_WORKER_BLOCK_TABLE_H_

#include <cstdint>
#include <vector>

namespace pagoda::worker {

// A physical block of the pool. Never leaves the process; other things are called by BlockKey.
enum class BlockId : int32_t {};
inline constexpr BlockId kNoBlock{-1};

enum class BlockState : uint8_t {
  kEmpty,      // no physical block
  kLoading,    // a transfer writes into it; nobody reads it
  kComputing,  // partly filled: valid up to the frontier
  kReady,      // all of it valid; never written again
};

// Where the KV of a token came from.
enum class BlockSource : uint8_t { kComputed, kLocal, kRam, kDisk };
inline constexpr int kNumBlockSources = 4;

struct TableBlock {
  BlockId id = kNoBlock;
  BlockState state = BlockState::kEmpty;
  BlockSource source = BlockSource::kComputed;
};

class BlockTable {
 public:
  explicit BlockTable(int32_t block_tokens) : block_tokens_(block_tokens) {}

  int32_t block_tokens() const { return block_tokens_; }
  int32_t size() const { return static_cast<int32_t>(blocks_.size()); }
  int32_t frontier() const { return frontier_; }
  // The index of the block that holds the frontier; may be size().
  int32_t frontier_block() const { return frontier_ / block_tokens_; }
  // Blocks behind `size()` are EMPTY.
  TableBlock at(int32_t index) const { return index < size() ? blocks_[index] : TableBlock{}; }
  // How many entries have a physical block.
  int32_t num_held() const { return num_held_; }

  // Replaces entry `index`, making the table longer when needed. It does not move the frontier.
  void Set(int32_t index, TableBlock block);

  // Where a chunk that starts at the frontier has to end: at `limit` or before the next READY or
  // LOADING block. Equal to the frontier when the frontier itself lies in a LOADING block.
  int32_t ChunkLimit(int32_t limit) const;

  // Rows up to `position` (not included) are computed: the blocks that this fills become READY and
  // the frontier moves on, also over READY blocks behind it. REQUIRES: frontier() <= position, and
  // every block in between is COMPUTING. AdvanceTo(frontier()) only looks for READY blocks.
  void AdvanceTo(int32_t position);

  // Empties the table; the caller gives the references back.
  void Clear();

 private:
  const int32_t block_tokens_;
  std::vector<TableBlock> blocks_;
  int32_t frontier_ = 0;
  int32_t num_held_ = 0;
};

inline int32_t BlocksFor(int32_t tokens, int32_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_BLOCK_TABLE_H_
