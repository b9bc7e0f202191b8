#include "services/kvstore/tiered_store.h"

#include <map>
#include <string>
#include <utility>

#include "common/base/crc32c.h"
#include "common/base/logging.h"

namespace pagoda::kvstore {

// Hands on what RAM has and collects the rest.
class TieredStore::RamPass final : public BlockSink {
 public:
  RamPass(TieredStore& store, CallNumber call, const CallContext& context,
          std::vector<BlockRef> refs, std::shared_ptr<BlockSink> sink)
      : store_(store),
        call_(call),
        context_(context),
        refs_(std::move(refs)),
        sink_(std::move(sink)) {}

  StatusOr<Destination> Begin(size_t index, const RecordHeader& header) override {
    return sink_->Begin(index, header);
  }
  void Done(size_t index, GetResult result) override {
    if (result.outcome == GetOutcome::kMissing) {
      missing_.push_back(index);
    } else {
      sink_->Done(index, std::move(result));
    }
  }
  void Finished() override { store_.GetBelow(call_, context_, refs_, std::move(missing_), sink_); }

 private:
  TieredStore& store_;
  const CallNumber call_;
  const CallContext context_;
  const std::vector<BlockRef> refs_;
  const std::shared_ptr<BlockSink> sink_;
  std::vector<size_t> missing_;
};

// Hands on what the tier below has, and promotes it.
class TieredStore::LowerPass final : public BlockSink {
 public:
  LowerPass(TieredStore& store, CallNumber call, std::vector<size_t> indices,
            std::shared_ptr<BlockSink> sink)
      : store_(store), call_(call), indices_(std::move(indices)), sink_(std::move(sink)) {}

  StatusOr<Destination> Begin(size_t index, const RecordHeader& header) override {
    header_ = header;
    StatusOr<Destination> destination = sink_->Begin(indices_[index], header);
    memory_ = destination.ok() ? destination->memory : nullptr;
    return destination;
  }
  void Done(size_t index, GetResult result) override {
    if (result.outcome == GetOutcome::kFound) {
      // Without its meta it is about to go.
      if (std::optional<IndexedBlock> indexed = store_.below_->Lookup(header_.ref.key)) {
        store_.Promote(call_, header_, indexed->meta,
                       memory_ != nullptr ? memory_ : result.lent.data);
      }
    } else if (result.outcome == GetOutcome::kFailed && !absl::IsCancelled(result.status) &&
               !absl::IsDeadlineExceeded(result.status)) {
      result = {GetOutcome::kMissing, Tier::kNone, absl::OkStatus(), {}};
    }
    sink_->Done(indices_[index], std::move(result));
  }
  void Finished() override { sink_->Finished(); }

 private:
  TieredStore& store_;
  const CallNumber call_;
  const std::vector<size_t> indices_;
  const std::shared_ptr<BlockSink> sink_;
  RecordHeader header_;
  std::byte* memory_ = nullptr;
};

// Looks below once more before the block becomes visible.
class TieredReservation final : public Reservation {
 public:
  TieredReservation(TieredStore& store, std::unique_ptr<Reservation> room)
      : store_(store), room_(std::move(room)) {}

  std::byte* payload() override { return room_->payload(); }
  const RecordHeader& header() const override { return room_->header(); }
  PutResult Commit(uint32_t crc) override {
    if (crc == header().payload_crc) {
      PutResult held = store_.Compare(header());
      if (held.outcome != PutOutcome::kStored) return held;
    }
    return room_->Commit(crc);
  }

 private:
  TieredStore& store_;
  const std::unique_ptr<Reservation> room_;
};

StatusOr<std::unique_ptr<TieredStore>> TieredStore::Create(RamTier::Options ram,
                                                           std::unique_ptr<LowerTier> below,
                                                           uint64_t spill_bytes) {
  Clock& clock = *ram.clock;
  Metrics* metrics = ram.metrics;
  auto spill = std::make_unique<Spill>(*below, metrics, spill_bytes);
  ram.on_evicted = [spill = spill.get()](PutBlock block) { spill->Add(block); };
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<RamTier> tier, RamTier::Create(std::move(ram)));
  return std::unique_ptr<TieredStore>(
      new TieredStore(std::move(spill), std::move(tier), std::move(below), clock, metrics));
}

TieredStore::TieredStore(std::unique_ptr<Spill> spill, std::unique_ptr<RamTier> ram,
                         std::unique_ptr<LowerTier> below, Clock& clock, Metrics* metrics)
    : spill_(std::move(spill)),
      ram_(std::move(ram)),
      clock_(clock),
      metrics_(metrics == nullptr ? nullptr : std::make_unique<TierMetrics>(*metrics, "ram")),
      below_(std::move(below)) {}

void TieredStore::FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                              FindCallback done) {
  auto shared = std::make_shared<const std::vector<BlockRef>>(refs);
  ram_->FindMissing(context, std::move(refs), [this, context, shared, done](FindResult in_ram) {
    if (!in_ram.status.ok()) return done(std::move(in_ram));
    // In the order in which a block moves down: none is passed over on its way.
    for (size_t i = 0; i < in_ram.blocks.size(); ++i) {
      Held& held = in_ram.blocks[i];
      held.in_ram = held.in_ram || spill_->Lookup((*shared)[i].key).has_value();
    }
    below_->FindMissing(context, *shared, [in_ram, done](FindResult below) mutable {
      // What the tier below cannot say counts as not held there.
      for (size_t i = 0; i < in_ram.blocks.size(); ++i) {
        in_ram.blocks[i].on_disk = below.blocks[i].on_disk;
      }
      done(std::move(in_ram));
    });
  });
}

CallNumber TieredStore::StartCall() { return ram_->StartCall(); }

void TieredStore::GetPart(CallNumber call, const CallContext& context, std::vector<BlockRef> refs,
                          std::shared_ptr<BlockSink> sink) {
  auto pass = std::make_shared<RamPass>(*this, call, context, refs, std::move(sink));
  ram_->GetPart(call, context, std::move(refs), std::move(pass));
}

void TieredStore::GetBelow(CallNumber call, const CallContext& context,
                           const std::vector<BlockRef>& refs, std::vector<size_t> missing,
                           std::shared_ptr<BlockSink> sink) {
  std::vector<size_t> indices;
  std::vector<BlockRef> below;
  for (size_t index : missing) {
    if (std::optional<PutBlock> waiting = spill_->Lookup(refs[index].key)) {
      sink->Done(index, GetWaiting(call, context, index, *waiting, *sink));
    } else if (below_->Lookup(refs[index].key)) {
      indices.push_back(index);
      below.push_back(refs[index]);
    } else {
      sink->Done(index, {GetOutcome::kMissing, Tier::kNone, absl::OkStatus(), {}});
    }
  }
  if (below.empty()) return sink->Finished();
  auto pass = std::make_shared<LowerPass>(*this, call, std::move(indices), std::move(sink));
  below_->Get(context, std::move(below), std::move(pass));
}

GetResult TieredStore::GetWaiting(CallNumber call, const CallContext& context, size_t index,
                                  const PutBlock& block, BlockSink& sink) {
  Status status = CheckCall(context, 1, clock_.Now());
  if (!status.ok()) return {GetOutcome::kFailed, Tier::kNone, status, {}};
  const RecordHeader& header = block.header;
  StatusOr<Destination> destination = sink.Begin(index, header);
  if (!destination.ok()) return {GetOutcome::kRefused, Tier::kRam, destination.status(), {}};
  GetResult found{GetOutcome::kFound, Tier::kRam, absl::OkStatus(), {}};
  const std::byte* payload = block.payload.data;
  if (destination->memory == nullptr) {
    found.lent = block.payload;
  } else if (CopyWithCrc32c(destination->memory, payload, header.payload_bytes) !=
             header.payload_crc) {
    if (ForgetWaiting({header.ref.key, header.producer_instance, "payload: wrong checksum"}) &&
        metrics_ != nullptr) {
      metrics_->corrupt.Increment();
    }
    return {GetOutcome::kCorrupt, Tier::kRam, absl::DataLossError("payload: wrong checksum"), {}};
  }
  Promote(call, header, block.meta, payload);
  return found;
}

void TieredStore::Promote(CallNumber call, const RecordHeader& header, const RecordMeta& meta,
                          const std::byte* payload) {
  ReserveResult reserved = ram_->Reserve(call, header, meta);
  if (reserved.room == nullptr) return;
  // A failed commit leaves things as they were.
  reserved.room->Commit(CopyWithCrc32c(reserved.room->payload(), payload, header.payload_bytes));
}

void TieredStore::Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) {
  struct Answers {
    std::vector<PutResult> results;
    std::vector<size_t> for_ram;
  };
  auto answers = std::make_shared<Answers>();
  Status status = CheckCall(context, blocks.size(), clock_.Now());
  if (!status.ok()) return done(FailedPut(status, blocks.size()));
  std::vector<PutBlock> for_ram;
  for (size_t i = 0; i < blocks.size(); ++i) {
    PutResult held = Compare(blocks[i].header);
    if (held.outcome == PutOutcome::kStored) {
      answers->for_ram.push_back(i);
      for_ram.push_back(std::move(blocks[i]));
    }
    answers->results.push_back(std::move(held));
  }
  ram_->Put(context, std::move(for_ram), [answers, done](std::vector<PutResult> results) {
    for (size_t i = 0; i < results.size(); ++i) {
      answers->results[answers->for_ram[i]] = std::move(results[i]);
    }
    done(std::move(answers->results));
  });
}

ReserveResult TieredStore::Reserve(CallNumber call, const RecordHeader& header,
                                   const RecordMeta& meta) {
  PutResult held = Compare(header);
  if (held.outcome != PutOutcome::kStored) return {nullptr, std::move(held)};
  ReserveResult reserved = ram_->Reserve(call, header, meta);
  if (reserved.room != nullptr) {
    reserved.room = std::make_unique<TieredReservation>(*this, std::move(reserved.room));
  }
  return reserved;
}

void TieredStore::ReportCorrupt(const CorruptReport& report) {
  ram_->ReportCorrupt(report);
  ForgetWaiting(report);
  below_->ReportCorrupt(report);
}

bool TieredStore::ForgetWaiting(const CorruptReport& report) {
  if (!spill_->Forget(report)) return false;
  ++corrupt_;
  Log(LogLevel::kError, "a block on its way to disk is wrong and was dropped",
      {{"key", report.key.ToHex()},
       {"producer", report.producer_instance},
       {"why", report.reason}});
  return true;
}

PutResult TieredStore::Compare(const RecordHeader& header) {
  std::optional<bool> same;
  // In the order in which a block moves down.
  if (std::optional<PutBlock> waiting = spill_->Lookup(header.ref.key)) {
    same = waiting->header.payload_bytes == header.payload_bytes &&
           waiting->header.payload_crc == header.payload_crc;
  } else if (std::optional<IndexedBlock> held = below_->Lookup(header.ref.key)) {
    same = held->SameBytes(header);
  }
  if (!same) return {PutOutcome::kStored, 0, absl::OkStatus()};
  if (*same) return {PutOutcome::kHave, 0, absl::OkStatus()};
  ++divergent_;
  if (metrics_ != nullptr) metrics_->divergent.Increment();
  return {
      PutOutcome::kDivergent, 0,
      absl::AlreadyExistsError("block " + header.ref.key.ToHex() + " is held with other bytes")};
}

StatusOr<StoreStats> TieredStore::Stats() {
  PAGODA_ASSIGN_OR_RETURN(StoreStats stats, ram_->Stats());
  PAGODA_ASSIGN_OR_RETURN(StoreStats below, below_->Stats());
  stats.tiers.insert(stats.tiers.end(), below.tiers.begin(), below.tiers.end());
  std::map<std::string, OwnerStats> owners;
  for (const std::vector<OwnerStats>& list : {stats.owners, below.owners}) {
    for (const OwnerStats& owner : list) {
      OwnerStats& sum = owners.try_emplace(owner.tenant, OwnerStats{owner.tenant}).first->second;
      sum.blocks += owner.blocks;
      sum.bytes += owner.bytes;
    }
  }
  stats.owners.clear();
  for (auto& [tenant, owner] : owners) stats.owners.push_back(std::move(owner));
  stats.divergent_puts += below.divergent_puts + divergent_;
  stats.corrupt_blocks += below.corrupt_blocks + corrupt_;
  return stats;
}

void TieredStore::SpillAll(TimePoint deadline) {
  std::vector<BlockKey> keys = ram_->KeysByAge();
  TimePoint start = clock_.Now();
  int64_t written = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    TimePoint now = clock_.Now();
    // As many as fit into the time left at the pace so far; the first shows the pace.
    auto left = static_cast<int64_t>(keys.size() - i);
    if (written > 0 && (now - start) / written * left > deadline - now) continue;
    std::optional<PutBlock> block = ram_->Peek(keys[i]);
    if (!block) continue;
    if (!spill_->AddUntil(*block, deadline)) return;
    ++written;
  }
  spill_->WaitIdle(deadline);
}

}  // namespace pagoda::kvstore
