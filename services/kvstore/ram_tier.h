// KV blocks in RAM: an index over one slab. Puts have two phases: room is reserved under the lock,
// the bytes are copied without it (checksum in that pass), then the block becomes visible. Readers
// hold their slot, so an eviction can drop a block from the index but never its bytes under a
// reader.
//
// It does not count tenants' quotas or expire blocks; the owner and meta are kept for those who
// will. What is evicted is handed to `on_evicted`.
//
// Concurrency: every method may be called from any thread. Answers come on the calling thread,
// before the call returns. No lock is held while a sink or callback runs or bytes are copied.
#ifndef PAGODA_SERVICES_KVSTORE_RAM_TIER_H_
#define PAGODA_SERVICES_KVSTORE_RAM_TIER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/clock.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/kv/block_store_admin.h"
#include "services/kvstore/eviction/interface.h"
#include "services/kvstore/owner_usage.h"
#include "services/kvstore/reserving_store.h"
#include "services/kvstore/slab.h"
#include "services/kvstore/tier_metrics.h"

namespace pagoda::kvstore {

class RamTier final : public ReservingStore, public BlockStoreAdmin {
 public:
  struct Options {
    uint64_t bytes = 0;                      // of the slab
    std::unique_ptr<EvictionPolicy> policy;  // null: LruPolicy
    Clock* clock = SystemClock::Get();
    Metrics* metrics = nullptr;  // null: not measured; outlives the tier
    // Gets each evicted block, on the thread of the put that needs its room and without a lock. The
    // room comes when it lets go of the payload: who keeps it longer copies. Null: it is gone.
    std::function<void(PutBlock)> on_evicted;
  };

  // An upper bound of what a block costs beside its slot: index, policy and slot bookkeeping.
  static constexpr uint64_t kIndexBytesPerBlock = 640;
  // Blocks are not smaller than this on average: bounds the index to 16 % of the slab.
  static constexpr uint64_t kMinBytesPerBlock = 4096;
  // A put that needs more room than this many blocks can make is refused, so that no call holds the
  // lock for long; what was evicted stays evicted and the next try finds the room.
  static constexpr int kMaxEvictionsPerPut = 256;

  // Errors: as Slab::Create.
  static StatusOr<std::unique_ptr<RamTier>> Create(Options options);
  ~RamTier() override;

  void FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                   FindCallback done) override;
  CallNumber StartCall() override;
  void GetPart(CallNumber call, const CallContext& context, std::vector<BlockRef> refs,
               std::shared_ptr<BlockSink> sink) override;
  void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) override;
  void ReportCorrupt(const CorruptReport& report) override;
  ReserveResult Reserve(CallNumber call, const RecordHeader& header,
                        const RecordMeta& meta) override;
  StatusOr<StoreStats> Stats() override;

  // What is held now, in the order in which it would go; and one of these, which Peek does not
  // renew.
  std::vector<BlockKey> KeysByAge() const;
  std::optional<PutBlock> Peek(const BlockKey& key) const;

  // Sum over entries = sum over owners; with what is reserved or only read on = used bytes of the
  // slab; index, policy and slab agree. Error: INTERNAL.
  Status CheckIntegrity() const;

 private:
  friend class RamReservation;

  struct Entry {
    BlockKey key;
    std::shared_ptr<Slot> slot;  // null: the number is free
    uint64_t payload_bytes = 0;
    uint32_t payload_crc = 0;
    uint32_t tenant_generation = 0;
    uint64_t weight_epoch = 0;
    int64_t expires_unix_ms = 0;
    int64_t last_use_unix_ms = 0;
    int32_t priority = 0;
    OwnerUsage::Owner owner;
  };

  struct Evicted {
    std::shared_ptr<Slot> slot;
    RecordMeta meta;
  };

  RamTier(Options options, std::shared_ptr<Slab> slab);

  GetResult GetOne(size_t index, const BlockKey& key, CallNumber call, BlockSink& sink);
  PutResult PutOne(const PutBlock& block, CallNumber call);
  PutResult Commit(const RecordHeader& header, const RecordMeta& meta, std::shared_ptr<Slot> slot,
                   CallNumber call);
  PutResult CommitLocked(const RecordHeader& header, const RecordMeta& meta,
                         std::shared_ptr<Slot> slot, CallNumber call,
                         std::optional<Evicted>& evicted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The block turned out to be unusable: it is forgotten, if it is still the one in `slot`.
  Status Quarantine(const BlockKey& key, const Slot* slot, const Status& why);

  std::shared_ptr<Slot> Find(const BlockKey& key, CallNumber call);
  // kHave or kDivergent when the key is held, else kStored.
  PutOutcome Compare(const RecordHeader& header) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PutResult RefusalOf(PutOutcome outcome, const BlockKey& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Evicted> EvictOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static RecordMeta MetaOf(const Entry& entry);
  void HandOver(Evicted evicted) const;
  void RemoveEntry(EntryId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShowGauges() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Slab> slab_;
  const uint64_t max_blocks_;
  Clock* const clock_;
  const std::function<void(PutBlock)> on_evicted_;
  const std::unique_ptr<TierMetrics> metrics_;  // null: not measured
  mutable Mutex mutex_;                         // taken before the slab's own
  const std::unique_ptr<EvictionPolicy> policy_ ABSL_PT_GUARDED_BY(mutex_);
  absl::flat_hash_map<BlockKey, EntryId> index_ ABSL_GUARDED_BY(mutex_);
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by EntryId
  std::vector<EntryId> free_ids_ ABSL_GUARDED_BY(mutex_);
  OwnerUsage owners_ ABSL_GUARDED_BY(mutex_);
  uint64_t indexed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // slots of entries
  CallNumber calls_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t evicted_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t divergent_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t corrupt_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_RAM_TIER_H_
