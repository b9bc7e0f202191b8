#include "services/kvstore/spill.h"

#include <cstring>
#include <utility>

namespace pagoda::kvstore {

struct Spill::State {
  mutable Mutex mutex;
  CondVar changed;
  uint64_t bytes ABSL_GUARDED_BY(mutex) = 0;
  absl::flat_hash_map<BlockKey, IndexedBlock> waiting ABSL_GUARDED_BY(mutex);
  prometheus::Counter* stored = nullptr;  // null: not measured
  prometheus::Counter* dropped = nullptr;
  prometheus::Counter* failed = nullptr;

  bool HasRoom(uint64_t more, uint64_t limit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return bytes == 0 || bytes + more <= limit;
  }
  // False when the block waits already.
  bool Take(const PutBlock& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const RecordHeader& header = block.header;
    if (!waiting
             .try_emplace(header.ref.key, IndexedBlock{header.payload_bytes, header.payload_crc,
                                                       header.producer_instance, block.meta})
             .second) {
      return false;
    }
    bytes += header.payload_bytes;
    return true;
  }
  void Finish(const BlockKey& key, PutOutcome outcome) {
    bool kept = outcome == PutOutcome::kStored || outcome == PutOutcome::kHave;
    if (stored != nullptr) (kept ? stored : failed)->Increment();
    MutexLock lock(mutex);
    auto it = waiting.find(key);
    bytes -= it->second.payload_bytes;
    waiting.erase(it);
    changed.SignalAll();
  }
};

Spill::Spill(LowerTier& below, Metrics* metrics, uint64_t max_bytes)
    : below_(below), max_bytes_(max_bytes), state_(std::make_shared<State>()) {
  if (metrics == nullptr) return;
  auto counter = [&](const char* result) {
    return &metrics->Counter("kvstore_spills_total",
                             "Blocks that RAM evicted for the disk, by what became of them",
                             {{"result", result}});
  };
  state_->stored = counter("stored");
  state_->dropped = counter("dropped");
  state_->failed = counter("failed");
}

void Spill::Add(const PutBlock& block) {
  if (below_.Lookup(block.header.ref.key)) return;
  {
    MutexLock lock(state_->mutex);
    if (!state_->HasRoom(block.header.payload_bytes, max_bytes_)) {
      if (state_->dropped != nullptr) state_->dropped->Increment();
      return;
    }
    if (!state_->Take(block)) return;
  }
  Send(block);
}

bool Spill::AddUntil(const PutBlock& block, TimePoint deadline) {
  if (below_.Lookup(block.header.ref.key)) return true;
  {
    MutexLock lock(state_->mutex);
    while (!state_->HasRoom(block.header.payload_bytes, max_bytes_)) {
      if (!state_->changed.WaitUntil(state_->mutex, deadline)) return false;
    }
    if (!state_->Take(block)) return true;
  }
  Send(block);
  return true;
}

bool Spill::WaitIdle(TimePoint deadline) {
  MutexLock lock(state_->mutex);
  while (!state_->waiting.empty()) {
    if (!state_->changed.WaitUntil(state_->mutex, deadline)) return false;
  }
  return true;
}

std::optional<IndexedBlock> Spill::Lookup(const BlockKey& key) const {
  MutexLock lock(state_->mutex);
  auto it = state_->waiting.find(key);
  if (it == state_->waiting.end()) return std::nullopt;
  return it->second;
}

void Spill::Send(const PutBlock& block) {
  PutBlock copy = block;
  std::shared_ptr<std::byte[]> bytes(new std::byte[block.payload.size]);
  std::memcpy(bytes.get(), block.payload.data, block.payload.size);
  copy.payload = {bytes.get(), block.payload.size, bytes};
  below_.Put({}, {std::move(copy)},
             [state = state_, key = block.header.ref.key](std::vector<PutResult> results) {
               state->Finish(key, results[0].outcome);
             });
}

}  // namespace pagoda::kvstore
