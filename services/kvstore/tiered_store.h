// RAM over a slower tier. A block is looked for in RAM, then below; what is found below is read by
// that tier's thread, checked there, answered with its tier and promoted into RAM by the way of any
// put. What RAM evicts is spilled below, and counts as in RAM while it waits for that. A put goes
// to RAM, unless the key waits or is held below: the same bytes are held already, others diverge.
//
// A failure below is a miss, never an error. A block may be in both tiers, and then counts in the
// bytes of both, for its owner too.
//
// Concurrency: every method may be called from any thread. No lock of RAM is held across a call of
// the tier below.
#ifndef PAGODA_SERVICES_KVSTORE_TIERED_STORE_H_
#define PAGODA_SERVICES_KVSTORE_TIERED_STORE_H_

#include <atomic>
#include <memory>
#include <vector>

#include "services/kvstore/lower_tier.h"
#include "services/kvstore/ram_tier.h"
#include "services/kvstore/spill.h"

namespace pagoda::kvstore {

class TieredStore final : public ReservingStore, public BlockStoreAdmin {
 public:
  // `ram.on_evicted` is set here. Errors: as RamTier::Create.
  static StatusOr<std::unique_ptr<TieredStore>> Create(RamTier::Options ram,
                                                       std::unique_ptr<LowerTier> below,
                                                       uint64_t spill_bytes = Spill::kMaxBytes);
  // The tier below finishes first.
  ~TieredStore() override = default;

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

  // Brings what RAM holds below until `deadline`, in the order of age, which it keeps there. At the
  // pace of the disk the oldest are left out so that there is time for the rest. REQUIRES: no other
  // calls run.
  void SpillAll(TimePoint deadline);

  Status CheckIntegrity() const { return ram_->CheckIntegrity(); }

 private:
  friend class TieredReservation;
  class RamPass;
  class LowerPass;

  TieredStore(std::unique_ptr<Spill> spill, std::unique_ptr<RamTier> ram,
              std::unique_ptr<LowerTier> below, Clock& clock, Metrics* metrics);

  // kStored when neither the tier below nor the spill holds the key.
  PutResult Compare(const RecordHeader& header);
  // The second half of a Get: the blocks that RAM did not have.
  void GetBelow(CallNumber call, const CallContext& context, const std::vector<BlockRef>& refs,
                std::vector<size_t> missing, std::shared_ptr<BlockSink> sink);
  // A block that waits to be written below.
  GetResult GetWaiting(CallNumber call, const CallContext& context, size_t index,
                       const PutBlock& block, BlockSink& sink);
  void Promote(CallNumber call, const RecordHeader& header, const RecordMeta& meta,
               const std::byte* payload);
  // False when it did not wait.
  bool ForgetWaiting(const CorruptReport& report);

  const std::unique_ptr<Spill> spill_;
  const std::unique_ptr<RamTier> ram_;
  Clock& clock_;
  const std::unique_ptr<TierMetrics> metrics_;  // null: not measured
  std::atomic<uint64_t> divergent_{0};
  std::atomic<uint64_t> corrupt_{0};        // while they waited
  const std::unique_ptr<LowerTier> below_;  // destroyed first: its answers use the rest
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_TIERED_STORE_H_
