// What each owner holds of a tier: blocks and bytes by tenant. An owner without blocks is
// forgotten.
//
// Concurrency: the tier's lock.
#ifndef PAGODA_SERVICES_KVSTORE_OWNER_USAGE_H_
#define PAGODA_SERVICES_KVSTORE_OWNER_USAGE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/kv/block_store_admin.h"

namespace pagoda::kvstore {

class OwnerUsage {
 private:
  using Owners = std::map<std::string, OwnerStats>;

 public:
  // Valid while the owner has a block.
  using Owner = Owners::iterator;

  Owner Add(const std::string& tenant, uint64_t bytes) {
    auto owner = owners_.try_emplace(tenant, OwnerStats{tenant}).first;
    ++owner->second.blocks;
    owner->second.bytes += bytes;
    return owner;
  }
  void Remove(Owner owner, uint64_t bytes) {
    owner->second.bytes -= bytes;
    if (--owner->second.blocks == 0) owners_.erase(owner);
  }

  // By tenant.
  std::vector<OwnerStats> List() const {
    std::vector<OwnerStats> list;
    for (const auto& [tenant, owner] : owners_) list.push_back(owner);
    return list;
  }
  // Whether the owners' sums are these.
  bool SumsTo(uint64_t blocks, uint64_t bytes) const {
    for (const auto& [tenant, owner] : owners_) {
      blocks -= owner.blocks;
      bytes -= owner.bytes;
    }
    return blocks == 0 && bytes == 0;
  }

 private:
  Owners owners_;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_OWNER_USAGE_H_
