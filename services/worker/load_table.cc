#include "services/worker/load_table.h"

#include <cassert>

namespace pagoda::worker {

LoadId LoadTable::Start(Sequence* sequence, const std::vector<LoadEntry>& entries) {
  assert(!entries.empty());
  LoadId id{next_id_++};
  for (const LoadEntry& entry : entries) blocks_->Retain(entry.block);
  num_blocks_ += static_cast<int32_t>(entries.size());
  loads_.emplace(id, Load{sequence, entries, static_cast<int32_t>(entries.size())});
  return id;
}

void LoadTable::Abandon(LoadId id) { loads_.at(id).sequence = nullptr; }

LoadTable::Settled LoadTable::Settle(LoadId id, int32_t index) {
  auto it = loads_.find(id);
  assert(it != loads_.end());
  Load& load = it->second;
  Settled settled{load.sequence, load.entries[index], --load.open == 0};
  assert(settled.entry.block != kNoBlock);
  load.entries[index].block = kNoBlock;
  --num_blocks_;
  blocks_->Release(settled.entry.block);
  if (settled.last) loads_.erase(it);
  return settled;
}

std::vector<BlockId> LoadTable::HeldBlocks() const {
  std::vector<BlockId> held;
  for (const auto& [id, load] : loads_) {
    for (const LoadEntry& entry : load.entries) {
      if (entry.block != kNoBlock) held.push_back(entry.block);
    }
  }
  return held;
}

}  // namespace pagoda::worker
