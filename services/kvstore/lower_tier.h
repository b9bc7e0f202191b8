// The tier below RAM, as the tiered store sees it: a BlockStore that also says, from memory and at
// once, what it holds under a key.
//
// Concurrency: every method may be called from any thread.
#ifndef PAGODA_SERVICES_KVSTORE_LOWER_TIER_H_
#define PAGODA_SERVICES_KVSTORE_LOWER_TIER_H_

#include <cstdint>
#include <optional>

#include "common/kv/block_store.h"
#include "common/kv/block_store_admin.h"

namespace pagoda::kvstore {

// What the index knows about a block.
struct IndexedBlock {
  uint64_t payload_bytes = 0;
  uint32_t payload_crc = 0;
  uint64_t producer_instance = 0;
  RecordMeta meta;

  bool SameBytes(const RecordHeader& header) const {
    return payload_bytes == header.payload_bytes && payload_crc == header.payload_crc;
  }
};

class LowerTier : public BlockStore, public BlockStoreAdmin {
 public:
  virtual std::optional<IndexedBlock> Lookup(const BlockKey& key) const = 0;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_LOWER_TIER_H_
