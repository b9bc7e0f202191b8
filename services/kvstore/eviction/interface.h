// Which block goes when room is needed. A policy knows entries by number and block reference, never
// bytes.
//
// A *call* is one request to the store: all blocks that it touches get its number, so that a policy
// can order the blocks of one chain among each other (deepest first). Calls overlap: a lower number
// may come after a higher one.
//
// Concurrency: none of its own; the tier that owns it calls it under its lock.
#ifndef PAGODA_SERVICES_KVSTORE_EVICTION_INTERFACE_H_
#define PAGODA_SERVICES_KVSTORE_EVICTION_INTERFACE_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "common/base/status.h"
#include "common/kv/block_key.h"

namespace pagoda::kvstore {

using EntryId = uint32_t;     // small and reused: a policy may index a vector by it
using CallNumber = uint64_t;  // by when the call started

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // REQUIRES: `id` is not known.
  virtual void Add(EntryId id, const BlockRef& ref, CallNumber call) = 0;
  // A block was read. REQUIRES: `id` is known, here and below.
  virtual void Touch(EntryId id, CallNumber call) = 0;
  virtual void Remove(EntryId id) = 0;

  // The entry that should go first among those for which `evictable` holds; it stays known until
  // Remove.
  virtual std::optional<EntryId> Victim(const std::function<bool(EntryId)>& evictable) const = 0;

  virtual size_t size() const = 0;
  virtual Status CheckIntegrity() const = 0;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_EVICTION_INTERFACE_H_
