// What operators do with a store, apart from what moves blocks (block_store.h). A store implements
// what it can; the rest answers UNIMPLEMENTED.
//
// Concurrency: every method may be called from any thread; it may wait, so never from a store's
// callback.
#ifndef PAGODA_COMMON_KV_BLOCK_STORE_ADMIN_H_
#define PAGODA_COMMON_KV_BLOCK_STORE_ADMIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/kv/block_store.h"

namespace pagoda {

struct TierStats {
  Tier tier = Tier::kNone;
  uint64_t blocks = 0;
  uint64_t bytes_used = 0;  // of the limit: records with what rounding costs
  uint64_t bytes_limit = 0;
  uint64_t evicted_blocks = 0;  // since the start
  uint64_t index_bytes = 0;     // an upper bound
};

struct OwnerStats {
  std::string tenant;
  uint64_t blocks = 0;
  uint64_t bytes = 0;
};

struct StoreStats {
  std::vector<TierStats> tiers;
  std::vector<OwnerStats> owners;  // their blocks and bytes sum to what the tiers hold
  uint64_t divergent_puts = 0;
  uint64_t corrupt_blocks = 0;  // copies that a tier dropped
};

// Names the blocks that have all of the fields that are set; at least one must be.
struct PurgeSelector {
  std::optional<BlockKey> key;
  std::optional<Namespace> name_space;
  std::optional<std::string> tenant;
  std::optional<uint64_t> weight_epoch;
  std::optional<uint64_t> producer_instance;
  std::optional<int64_t> created_before_unix_ms;
  std::optional<int64_t> created_after_unix_ms;
};

struct PurgeResult {
  uint64_t blocks = 0;
  uint64_t bytes = 0;
};

struct ScrubResult {
  uint64_t blocks_checked = 0;
  uint64_t blocks_corrupt = 0;
};

class BlockStoreAdmin {
 public:
  virtual ~BlockStoreAdmin() = default;

  virtual StatusOr<StoreStats> Stats() = 0;
  // Deletes what the selector names. Error: INVALID_ARGUMENT when no field of it is set.
  virtual StatusOr<PurgeResult> Purge(const PurgeSelector& selector);
  // Reads go on, puts are refused; returns when what was accepted is finished.
  virtual Status Drain(TimePoint deadline);
  // Reads and checks every record once.
  virtual StatusOr<ScrubResult> Scrub(uint64_t bytes_per_second);
};

}  // namespace pagoda

#endif  // PAGODA_COMMON_KV_BLOCK_STORE_ADMIN_H_
