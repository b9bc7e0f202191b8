#include "services/worker/block_manager.h"

#include <cassert>
#include <string>

namespace pagoda::worker {

BlockManager::BlockManager(int32_t num_blocks) : blocks_(num_blocks) {
  free_.reserve(num_blocks);
  for (int32_t i = num_blocks - 1; i >= 0; --i) free_.push_back(BlockId{i});
}

std::optional<BlockId> BlockManager::Allocate() {
  if (free_.empty()) {
    if (num_cached_ == 0) return std::nullopt;
    EvictOldestLeaf();
  }
  BlockId id = free_.back();
  free_.pop_back();
  at(id).references = 1;
  return id;
}

void BlockManager::Retain(BlockId id) {
  assert(at(id).references > 0);
  ++at(id).references;
}

void BlockManager::Release(BlockId id) {
  Block& block = at(id);
  assert(block.references > 0);
  if (--block.references > 0) return;
  if (!block.indexed) {
    Free(id);
    return;
  }
  block.last_use = ++uses_;
  ++num_cached_;
  if (IsEvictable(block)) leaves_.emplace(block.last_use, id);
}

std::optional<BlockId> BlockManager::Find(const BlockKey& key) {
  auto it = index_.find(key);
  if (it == index_.end()) return std::nullopt;
  Block& block = at(it->second);
  if (block.references++ == 0) {
    leaves_.erase({block.last_use, it->second});
    --num_cached_;
  }
  return it->second;
}

BlockManager::Probe BlockManager::ProbePrefix(std::span<const BlockRef> refs) const {
  Probe probe;
  for (const BlockRef& ref : refs) {
    auto it = index_.find(ref.key);
    if (it == index_.end()) break;
    ++probe.matched;
    probe.cached += at(it->second).references == 0;
  }
  return probe;
}

BlockId BlockManager::Publish(BlockId id, const BlockKey& key, BlockId parent) {
  if (std::optional<BlockId> held = Find(key)) {
    Release(id);
    return *held;
  }
  Block& block = at(id);
  assert(block.references > 0 && !block.indexed);
  block.indexed = true;
  block.key = key;
  block.parent = parent;
  block.children = 0;
  index_.emplace(key, id);
  if (parent != kNoBlock) {
    assert(at(parent).indexed && at(parent).references > 0);
    ++at(parent).children;
  }
  return id;
}

// Whether the indexed `block` is `ancestor` or has it before it.
bool BlockManager::IsBelow(BlockId block, BlockId ancestor) const {
  while (block != kNoBlock && block != ancestor) block = at(block).parent;
  return block == ancestor;
}

std::vector<BlockManager::Unindexed> BlockManager::Unindex(const BlockKey& key) {
  std::vector<Unindexed> unindexed;
  auto it = index_.find(key);
  if (it == index_.end()) return unindexed;
  const BlockId root = it->second;
  const BlockId parent = at(root).parent;
  std::vector<BlockId> below;  // parents are followed, so it is found before anything is changed
  for (const auto& [other, id] : index_) {
    if (IsBelow(id, root)) below.push_back(id);
  }
  for (BlockId id : below) {
    Block& block = at(id);
    if (IsEvictable(block)) leaves_.erase({block.last_use, id});
  }
  for (BlockId id : below) {
    Block& block = at(id);
    unindexed.push_back({block.key, block.producer});
    index_.erase(block.key);
    block.indexed = false;
    block.parent = kNoBlock;
    block.children = 0;
    if (block.references > 0) continue;
    --num_cached_;
    Free(id);
  }
  if (parent == kNoBlock) return unindexed;
  --at(parent).children;
  if (IsEvictable(at(parent))) leaves_.emplace(at(parent).last_use, parent);
  return unindexed;
}

void BlockManager::SetProducer(BlockId block, uint64_t producer) {
  assert(at(block).references > 0);
  at(block).producer = producer;
}

void BlockManager::EvictOldestLeaf() {
  BlockId id = leaves_.begin()->second;
  leaves_.erase(leaves_.begin());
  Block& block = at(id);
  index_.erase(block.key);
  --num_cached_;
  BlockId parent = block.parent;
  Free(id);
  if (parent == kNoBlock) return;
  --at(parent).children;
  if (IsEvictable(at(parent))) leaves_.emplace(at(parent).last_use, parent);
}

void BlockManager::Free(BlockId id) {
  at(id) = Block{};
  free_.push_back(id);
  freed_.push_back(id);
}

Status BlockManager::CheckIntegrity() const {
  auto broken = [](int32_t block, const char* rule) {
    return absl::InternalError("block " + std::to_string(block) + ": " + rule);
  };
  std::vector<int32_t> children(blocks_.size());
  std::vector<bool> is_free(blocks_.size());
  for (BlockId id : free_) {
    auto i = static_cast<int32_t>(id);
    if (is_free[i]) return broken(i, "is twice in the free list");
    is_free[i] = true;
  }
  int32_t cached = 0;
  size_t indexed = 0;
  size_t leaves = 0;
  for (int32_t i = 0; i < num_blocks(); ++i) {
    const Block& block = blocks_[i];
    if (block.references < 0) return broken(i, "has a negative count of references");
    if (is_free[i] != (block.references == 0 && !block.indexed)) {
      return broken(i, "is free and in use, or neither");
    }
    if (!block.indexed) continue;
    ++indexed;
    auto it = index_.find(block.key);
    if (it == index_.end() || it->second != BlockId{i}) return broken(i, "is not found by its key");
    cached += block.references == 0;
    if (IsEvictable(block)) {
      ++leaves;
      if (!leaves_.contains({block.last_use, BlockId{i}})) return broken(i, "cannot be evicted");
    }
    if (block.parent == kNoBlock) continue;
    const Block& parent = at(block.parent);
    if (!parent.indexed) return broken(i, "is indexed without its parent");
    if (block.references > 0 && parent.references == 0)
      return broken(i, "is held without its parent");
    ++children[static_cast<int32_t>(block.parent)];
  }
  for (int32_t i = 0; i < num_blocks(); ++i) {
    if (blocks_[i].children != children[i]) return broken(i, "counts its children wrongly");
  }
  if (cached != num_cached_) return absl::InternalError("cached blocks are counted wrongly");
  if (indexed != index_.size()) return absl::InternalError("the index names a block twice");
  if (leaves != leaves_.size()) return absl::InternalError("a leaf to evict is not one");
  return absl::OkStatus();
}

}  // namespace pagoda::worker
