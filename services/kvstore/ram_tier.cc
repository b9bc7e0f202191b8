#include "services/kvstore/ram_tier.h"

#include <algorithm>
#include <utility>

#include "common/base/crc32c.h"
#include "common/base/logging.h"
#include "services/kvstore/eviction/lru.h"

namespace pagoda::kvstore {
namespace {

// A slot: the encoded header, padding, the payload.
constexpr uint64_t kPayloadAt = 256;
static_assert(RecordHeader::kBytes <= kPayloadAt);
constexpr uint32_t kRetryMs = 100;  // room comes with the next read that ends

std::string_view HeaderBytes(const Slot& slot) {
  return {reinterpret_cast<const char*>(slot.data()), RecordHeader::kBytes};
}

int64_t UnixMs(const Clock& clock) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock.WallTime()).count();
}

}  // namespace

class RamReservation final : public Reservation {
 public:
  RamReservation(RamTier& tier, RecordHeader header, RecordMeta meta, std::shared_ptr<Slot> slot,
                 CallNumber call)
      : tier_(tier),
        header_(std::move(header)),
        meta_(std::move(meta)),
        slot_(std::move(slot)),
        call_(call) {}

  std::byte* payload() override { return slot_->data() + kPayloadAt; }
  const RecordHeader& header() const override { return header_; }
  PutResult Commit(uint32_t crc) override {
    if (crc != header_.payload_crc) {
      return {PutOutcome::kCorrupt, 0, absl::DataLossError("payload: wrong checksum")};
    }
    std::string bytes = EncodeHeader(header_);
    std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(slot_->data()));
    return tier_.Commit(header_, meta_, std::move(slot_), call_);
  }

 private:
  RamTier& tier_;
  const RecordHeader header_;
  const RecordMeta meta_;
  std::shared_ptr<Slot> slot_;
  const CallNumber call_;
};

StatusOr<std::unique_ptr<RamTier>> RamTier::Create(Options options) {
  PAGODA_ASSIGN_OR_RETURN(std::shared_ptr<Slab> slab, Slab::Create(options.bytes));
  if (options.policy == nullptr) options.policy = std::make_unique<LruPolicy>();
  return std::unique_ptr<RamTier>(new RamTier(std::move(options), std::move(slab)));
}

RamTier::RamTier(Options options, std::shared_ptr<Slab> slab)
    : slab_(std::move(slab)),
      max_blocks_(std::max<uint64_t>(slab_->bytes() / kMinBytesPerBlock, 1)),
      clock_(options.clock),
      on_evicted_(std::move(options.on_evicted)),
      metrics_(options.metrics == nullptr ? nullptr
                                          : std::make_unique<TierMetrics>(*options.metrics, "ram")),
      policy_(std::move(options.policy)) {}

RamTier::~RamTier() = default;

CallNumber RamTier::StartCall() {
  MutexLock lock(mutex_);
  return ++calls_;
}

void RamTier::FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                          FindCallback done) {
  Status status = CheckCall(context, refs.size(), clock_->Now());
  if (!status.ok()) return done(FailedFind(status, refs.size()));
  FindResult result;
  result.blocks.reserve(refs.size());
  {
    MutexLock lock(mutex_);
    for (const BlockRef& ref : refs) result.blocks.push_back({index_.contains(ref.key), false});
  }
  done(std::move(result));
}

void RamTier::GetPart(CallNumber call, const CallContext& context, std::vector<BlockRef> refs,
                      std::shared_ptr<BlockSink> sink) {
  Status status = CheckCall(context, refs.size(), clock_->Now());
  for (size_t i = 0; i < refs.size(); ++i) {
    if (status.ok()) status = CheckCall(context, refs.size(), clock_->Now());
    sink->Done(i, status.ok() ? GetOne(i, refs[i].key, call, *sink)
                              : GetResult{GetOutcome::kFailed, Tier::kNone, status, {}});
  }
  sink->Finished();
}

GetResult RamTier::GetOne(size_t index, const BlockKey& key, CallNumber call, BlockSink& sink) {
  std::shared_ptr<Slot> slot = Find(key, call);
  if (slot == nullptr) return {GetOutcome::kMissing, Tier::kNone, absl::OkStatus(), {}};
  StatusOr<RecordHeader> header = DecodeHeader(HeaderBytes(*slot));
  if (header.ok() && header->ref.key != key) header = absl::DataLossError("another block's header");
  if (!header.ok()) {
    return {GetOutcome::kCorrupt, Tier::kRam, Quarantine(key, slot.get(), header.status()), {}};
  }
  StatusOr<Destination> destination = sink.Begin(index, *header);
  if (!destination.ok()) {
    return {GetOutcome::kRefused, Tier::kRam, destination.status(), {}};
  }
  const std::byte* payload = slot->data() + kPayloadAt;
  size_t bytes = header->payload_bytes;
  if (destination->memory == nullptr) {
    return {GetOutcome::kFound, Tier::kRam, absl::OkStatus(), {payload, bytes, std::move(slot)}};
  }
  if (CopyWithCrc32c(destination->memory, payload, bytes) != header->payload_crc) {
    Status why = absl::DataLossError("payload: wrong checksum");
    return {GetOutcome::kCorrupt, Tier::kRam, Quarantine(key, slot.get(), why), {}};
  }
  return {GetOutcome::kFound, Tier::kRam, absl::OkStatus(), {}};
}

std::shared_ptr<Slot> RamTier::Find(const BlockKey& key, CallNumber call) {
  MutexLock lock(mutex_);
  auto it = index_.find(key);
  if (it == index_.end()) return nullptr;
  policy_->Touch(it->second, call);
  Entry& entry = entries_[it->second];
  entry.last_use_unix_ms = UnixMs(*clock_);
  return entry.slot;
}

Status RamTier::Quarantine(const BlockKey& key, const Slot* slot, const Status& why) {
  Log(LogLevel::kError, "a block in RAM failed its checks and was dropped",
      {{"key", key.ToHex()}, {"why", why}});
  MutexLock lock(mutex_);
  ++corrupt_;
  if (metrics_ != nullptr) metrics_->corrupt.Increment();
  auto it = index_.find(key);
  if (it != index_.end() && entries_[it->second].slot.get() == slot) RemoveEntry(it->second);
  ShowGauges();
  return why;
}

void RamTier::ReportCorrupt(const CorruptReport& report) {
  {
    MutexLock lock(mutex_);
    auto it = index_.find(report.key);
    if (it == index_.end()) return;
    ++corrupt_;
    RemoveEntry(it->second);
    ShowGauges();
  }
  Log(LogLevel::kError, "a reader found a block wrong, and it was dropped",
      {{"key", report.key.ToHex()},
       {"producer", report.producer_instance},
       {"why", report.reason}});
}

void RamTier::Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) {
  CallNumber call = StartCall();
  std::vector<PutResult> results;
  results.reserve(blocks.size());
  for (PutBlock& block : blocks) {
    Status status = CheckCall(context, blocks.size(), clock_->Now());
    results.push_back(status.ok() ? PutOne(block, call)
                                  : PutResult{PutOutcome::kFailed, 0, status});
    block.payload = {};
  }
  done(std::move(results));
}

PutResult RamTier::PutOne(const PutBlock& block, CallNumber call) {
  if (block.payload.size != block.header.payload_bytes) {
    return {PutOutcome::kCorrupt, 0,
            absl::DataLossError("payload of " + std::to_string(block.payload.size) +
                                " bytes, the header says " +
                                std::to_string(block.header.payload_bytes))};
  }
  ReserveResult reserved = Reserve(call, block.header, block.meta);
  if (reserved.room == nullptr) return reserved.refusal;
  uint32_t crc = CopyWithCrc32c(reserved.room->payload(), block.payload.data, block.payload.size);
  return reserved.room->Commit(crc);
}

ReserveResult RamTier::Reserve(CallNumber call, const RecordHeader& header,
                               const RecordMeta& meta) {
  Status status = CheckHeader(header);
  if (status.ok() && meta.owner_tenant.size() > kMaxTenantBytes) {
    status =
        absl::InvalidArgumentError("owner_tenant of " + std::to_string(meta.owner_tenant.size()) +
                                   " bytes, at most " + std::to_string(kMaxTenantBytes));
  }
  if (!status.ok()) return {nullptr, {PutOutcome::kCorrupt, 0, status}};
  uint64_t bytes = kPayloadAt + header.payload_bytes;
  std::shared_ptr<Slot> slot;
  for (int evictions = 0; slot == nullptr; ++evictions) {
    std::optional<Evicted> evicted;
    {
      MutexLock lock(mutex_);
      if (PutOutcome held = Compare(header); held != PutOutcome::kStored) {
        return {nullptr, RefusalOf(held, header.ref.key)};
      }
      if (bytes <= slab_->bytes()) {
        slot = slab_->Allocate(bytes);
        if (slot == nullptr && evictions < kMaxEvictionsPerPut) evicted = EvictOne();
      }
      ShowGauges();
      if (slot == nullptr && !evicted) {
        return {nullptr, RefusalOf(PutOutcome::kNoRoom, header.ref.key)};
      }
    }
    if (evicted) HandOver(*std::move(evicted));
  }
  return {std::make_unique<RamReservation>(*this, header, meta, std::move(slot), call), {}};
}

PutResult RamTier::Commit(const RecordHeader& header, const RecordMeta& meta,
                          std::shared_ptr<Slot> slot, CallNumber call) {
  std::optional<Evicted> evicted;
  PutResult result;
  {
    MutexLock lock(mutex_);
    result = CommitLocked(header, meta, std::move(slot), call, evicted);
  }
  if (evicted) HandOver(*std::move(evicted));
  return result;
}

PutResult RamTier::CommitLocked(const RecordHeader& header, const RecordMeta& meta,
                                std::shared_ptr<Slot> slot, CallNumber call,
                                std::optional<Evicted>& evicted) {
  if (PutOutcome held = Compare(header); held != PutOutcome::kStored) {
    return RefusalOf(held, header.ref.key);
  }
  if (index_.size() >= max_blocks_) {
    evicted = EvictOne();
    if (!evicted) return RefusalOf(PutOutcome::kNoRoom, header.ref.key);
  }
  EntryId id = static_cast<EntryId>(entries_.size());
  if (free_ids_.empty()) {
    entries_.emplace_back();
  } else {
    id = free_ids_.back();
    free_ids_.pop_back();
  }
  OwnerUsage::Owner owner = owners_.Add(meta.owner_tenant, slot->bytes());
  indexed_bytes_ += slot->bytes();
  entries_[id] = {header.ref.key,         std::move(slot),
                  header.payload_bytes,   header.payload_crc,
                  meta.tenant_generation, meta.weight_epoch,
                  meta.expires_unix_ms,   UnixMs(*clock_),
                  meta.priority,          owner};
  index_.emplace(header.ref.key, id);
  policy_->Add(id, header.ref, call);
  ShowGauges();
  return {PutOutcome::kStored, 0, absl::OkStatus()};
}

PutOutcome RamTier::Compare(const RecordHeader& header) const {
  auto it = index_.find(header.ref.key);
  if (it == index_.end()) return PutOutcome::kStored;
  const Entry& entry = entries_[it->second];
  bool same =
      entry.payload_crc == header.payload_crc && entry.payload_bytes == header.payload_bytes;
  return same ? PutOutcome::kHave : PutOutcome::kDivergent;
}

PutResult RamTier::RefusalOf(PutOutcome outcome, const BlockKey& key) {
  if (outcome == PutOutcome::kHave) return {outcome, 0, absl::OkStatus()};
  if (outcome == PutOutcome::kNoRoom) {
    return {outcome, kRetryMs, absl::ResourceExhaustedError("no block can make way")};
  }
  ++divergent_;
  if (metrics_ != nullptr) metrics_->divergent.Increment();
  return {outcome, 0,
          absl::AlreadyExistsError("block " + key.ToHex() + " is held with other bytes")};
}

std::optional<RamTier::Evicted> RamTier::EvictOne() {
  // A slot that is read on frees nothing now. Readers come only through the index, under this lock,
  // so the count of an unread slot cannot rise behind our back.
  auto unread = [this](EntryId id)
                    ABSL_NO_THREAD_SAFETY_ANALYSIS { return entries_[id].slot.use_count() == 1; };
  std::optional<EntryId> victim = policy_->Victim(unread);
  if (!victim) return std::nullopt;
  Evicted evicted{entries_[*victim].slot, MetaOf(entries_[*victim])};
  RemoveEntry(*victim);
  ++evicted_;
  return evicted;
}

RecordMeta RamTier::MetaOf(const Entry& entry) {
  return {entry.owner->first, entry.tenant_generation, entry.weight_epoch,
          entry.priority,     entry.expires_unix_ms,   entry.last_use_unix_ms};
}

void RamTier::HandOver(Evicted evicted) const {
  if (on_evicted_ == nullptr) return;
  StatusOr<RecordHeader> header = DecodeHeader(HeaderBytes(*evicted.slot));
  if (!header.ok()) return;  // its next reader would have found it corrupt
  const std::byte* payload = evicted.slot->data() + kPayloadAt;
  size_t bytes = header->payload_bytes;
  on_evicted_(
      {*std::move(header), std::move(evicted.meta), {payload, bytes, std::move(evicted.slot)}});
}

std::vector<BlockKey> RamTier::KeysByAge() const {
  MutexLock lock(mutex_);
  std::vector<BlockKey> keys;
  keys.reserve(index_.size());
  // As none is taken, the policy offers them all.
  (void)policy_->Victim([&](EntryId id) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    keys.push_back(entries_[id].key);
    return false;
  });
  return keys;
}

std::optional<PutBlock> RamTier::Peek(const BlockKey& key) const {
  std::shared_ptr<Slot> slot;
  RecordMeta meta;
  {
    MutexLock lock(mutex_);
    auto it = index_.find(key);
    if (it == index_.end()) return std::nullopt;
    slot = entries_[it->second].slot;
    meta = MetaOf(entries_[it->second]);
  }
  StatusOr<RecordHeader> header = DecodeHeader(HeaderBytes(*slot));
  if (!header.ok() || header->ref.key != key) return std::nullopt;
  const std::byte* payload = slot->data() + kPayloadAt;
  size_t bytes = header->payload_bytes;
  return PutBlock{*std::move(header), std::move(meta), {payload, bytes, std::move(slot)}};
}

void RamTier::RemoveEntry(EntryId id) {
  Entry& entry = entries_[id];
  policy_->Remove(id);
  index_.erase(entry.key);
  indexed_bytes_ -= entry.slot->bytes();
  owners_.Remove(entry.owner, entry.slot->bytes());
  entry = {};
  free_ids_.push_back(id);
}

void RamTier::ShowGauges() {
  if (metrics_ == nullptr) return;
  metrics_->bytes.Set(static_cast<double>(slab_->used()));
  metrics_->blocks.Set(static_cast<double>(index_.size()));
}

StatusOr<StoreStats> RamTier::Stats() {
  MutexLock lock(mutex_);
  StoreStats stats;
  stats.tiers.push_back({Tier::kRam, index_.size(), slab_->used(), slab_->bytes(), evicted_,
                         index_.size() * kIndexBytesPerBlock});
  stats.owners = owners_.List();
  stats.divergent_puts = divergent_;
  stats.corrupt_blocks = corrupt_;
  return stats;
}

Status RamTier::CheckIntegrity() const {
  MutexLock lock(mutex_);
  PAGODA_RETURN_IF_ERROR(slab_->CheckIntegrity());
  PAGODA_RETURN_IF_ERROR(policy_->CheckIntegrity());
  uint64_t entry_bytes = 0;
  for (const auto& [key, id] : index_) {
    if (entries_[id].slot == nullptr || entries_[id].key != key) {
      return absl::InternalError("RAM tier: the index names an entry of another block");
    }
    entry_bytes += entries_[id].slot->bytes();
  }
  if (entry_bytes != indexed_bytes_ || !owners_.SumsTo(index_.size(), indexed_bytes_)) {
    return absl::InternalError("RAM tier: entries and owners do not sum to the same");
  }
  if (policy_->size() != index_.size() || entries_.size() != index_.size() + free_ids_.size()) {
    return absl::InternalError("RAM tier: index and policy differ in length");
  }
  if (indexed_bytes_ > slab_->used()) {
    return absl::InternalError("RAM tier: more bytes indexed than used");
  }
  return absl::OkStatus();
}

}  // namespace pagoda::kvstore
