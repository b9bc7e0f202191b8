// Least recently used, leaf first: a block goes before what it depends on.
//
// Each entry carries the highest number of a call that used it; the lowest goes first, and among
// equal ones the deepest. A block that is added also renews the newest shallower blocks of its run,
// which are its ancestors when a chain arrives block by block; so inside a run the order is by
// depth however the chain came. Across runs it holds for chains that are read or put in one call.
//
// Concurrency: as EvictionPolicy.
#ifndef PAGODA_SERVICES_KVSTORE_EVICTION_LRU_H_
#define PAGODA_SERVICES_KVSTORE_EVICTION_LRU_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "services/kvstore/eviction/interface.h"

namespace pagoda::kvstore {

class LruPolicy final : public EvictionPolicy {
 public:
  void Add(EntryId id, const BlockRef& ref, CallNumber call) override;
  void Touch(EntryId id, CallNumber call) override;
  void Remove(EntryId id) override;
  std::optional<EntryId> Victim(const std::function<bool(EntryId)>& evictable) const override;
  size_t size() const override { return order_.size(); }
  Status CheckIntegrity() const override;

 private:
  // Where an entry stands; the first goes first.
  struct Position {
    CallNumber call = 0;
    uint32_t height = 0;  // UINT32_MAX - depth: the deepest first
    EntryId id = 0;

    friend auto operator<=>(const Position&, const Position&) = default;
  };
  struct Entry {
    BlockKey anchor;
    Position position;
    bool known = false;
  };

  void Renew(EntryId id, CallNumber call);
  void RenewAncestors(const BlockRef& ref, CallNumber call);

  std::vector<Entry> entries_;  // by EntryId
  std::set<Position> order_;
  absl::flat_hash_map<BlockKey, std::set<Position>> runs_;  // by anchor
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_EVICTION_LRU_H_
