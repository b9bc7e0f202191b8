#include "services/worker/block_table.h"

#include <cassert>

namespace pagoda::worker {

void BlockTable::Set(int32_t index, TableBlock block) {
  if (index >= size()) blocks_.resize(index + 1);
  num_held_ += (block.id != kNoBlock) - (blocks_[index].id != kNoBlock);
  blocks_[index] = block;
}

int32_t BlockTable::ChunkLimit(int32_t limit) const {
  for (int32_t i = frontier_block(); i * block_tokens_ < limit; ++i) {
    BlockState state = at(i).state;
    if (state == BlockState::kLoading || state == BlockState::kReady) {
      return i == frontier_block() ? frontier_ : i * block_tokens_;
    }
  }
  return limit;
}

void BlockTable::AdvanceTo(int32_t position) {
  assert(position >= frontier_);
  int32_t first = frontier_block();
  frontier_ = position;
  for (int32_t i = first; (i + 1) * block_tokens_ <= position; ++i) {
    blocks_[i].state = BlockState::kReady;
  }
  while (at(frontier_block()).state == BlockState::kReady) {
    frontier_ = (frontier_block() + 1) * block_tokens_;
  }
}

void BlockTable::Clear() {
  blocks_.clear();
  frontier_ = 0;
  num_held_ = 0;
}

}  // namespace pagoda::worker
