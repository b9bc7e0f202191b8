#include "services/kvstore/eviction/lru.h"

namespace pagoda::kvstore {

void LruPolicy::Add(EntryId id, const BlockRef& ref, CallNumber call) {
  if (id >= entries_.size()) entries_.resize(id + 1);
  RenewAncestors(ref, call);
  entries_[id] = {ref.anchor, {call, UINT32_MAX - ref.depth, id}, true};
  order_.insert(entries_[id].position);
  runs_[ref.anchor].insert(entries_[id].position);
}

void LruPolicy::Touch(EntryId id, CallNumber call) { Renew(id, call); }

void LruPolicy::Remove(EntryId id) {
  Entry& entry = entries_[id];
  order_.erase(entry.position);
  auto run = runs_.find(entry.anchor);
  run->second.erase(entry.position);
  if (run->second.empty()) runs_.erase(run);
  entry.known = false;
}

std::optional<EntryId> LruPolicy::Victim(const std::function<bool(EntryId)>& evictable) const {
  for (const Position& position : order_) {
    if (evictable(position.id)) return position.id;
  }
  return std::nullopt;
}

void LruPolicy::Renew(EntryId id, CallNumber call) {
  Entry& entry = entries_[id];
  if (entry.position.call >= call) return;
  std::set<Position>& run = runs_.find(entry.anchor)->second;
  order_.erase(entry.position);
  run.erase(entry.position);
  entry.position.call = call;
  order_.insert(entry.position);
  run.insert(entry.position);
}

void LruPolicy::RenewAncestors(const BlockRef& ref, CallNumber call) {
  auto found = runs_.find(ref.anchor);
  if (found == runs_.end()) return;
  const std::set<Position>& run = found->second;
  CallNumber newest = run.rbegin()->call;
  if (newest >= call) return;
  std::vector<EntryId> ancestors;
  // From the shallowest of the newest call on; a run has no more than kRunBlocks depths.
  for (auto it = run.rbegin(); it != run.rend() && it->call == newest; ++it) {
    bool deeper = UINT32_MAX - it->height >= ref.depth;
    if (deeper || ancestors.size() == kRunBlocks) break;
    ancestors.push_back(it->id);
  }
  for (EntryId id : ancestors) Renew(id, call);
}

Status LruPolicy::CheckIntegrity() const {
  size_t in_runs = 0;
  for (const auto& [anchor, run] : runs_) {
    in_runs += run.size();
    if (run.empty()) return absl::InternalError("lru: an empty run");
    for (const Position& position : run) {
      if (!order_.contains(position) || entries_[position.id].anchor != anchor) {
        return absl::InternalError("lru: a run holds what is not ordered");
      }
    }
  }
  size_t known = 0;
  for (const Entry& entry : entries_) {
    if (!entry.known) continue;
    ++known;
    if (!order_.contains(entry.position)) return absl::InternalError("lru: an entry has no place");
  }
  if (known != order_.size() || in_runs != order_.size()) {
    return absl::InternalError("lru: the lists differ in length");
  }
  return absl::OkStatus();
}

}  // namespace pagoda::kvstore
