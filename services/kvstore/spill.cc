#include "services/kvstore/spill.h"

#include <cstring>
#include <utility>

namespace pagoda::kvstore {

struct Spill::State {
  struct Waiting {
    PutBlock block;
    std::stop_source forgotten;
  };

  mutable Mutex mutex;
  CondVar changed;
  uint64_t bytes ABSL_GUARDED_BY(mutex) = 0;  // with what was forgotten and not answered yet
  absl::flat_hash_map<BlockKey, Waiting> waiting ABSL_GUARDED_BY(mutex);
  prometheus::Counter* stored = nullptr;  // null: not measured
  prometheus::Counter* dropped = nullptr;
  prometheus::Counter* failed = nullptr;

  bool HasRoom(uint64_t more, uint64_t limit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return bytes == 0 || bytes + more <= limit;
  }
  // What says that the block was forgotten; nullopt when it waits already.
  std::optional<std::stop_source> Take(const PutBlock& block) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    auto [it, added] = waiting.try_emplace(block.header.ref.key, Waiting{block, {}});
    if (!added) return std::nullopt;
    bytes += block.header.payload_bytes;
    return it->second.forgotten;
  }
  // Returns whether the tier below holds a block that was forgotten.
  bool Finish(const RecordHeader& header, const std::stop_source& forgotten, PutOutcome outcome) {
    bool kept = outcome == PutOutcome::kStored || outcome == PutOutcome::kHave;
    MutexLock lock(mutex);
    bytes -= header.payload_bytes;
    bool wrong = forgotten.stop_requested();
    if (!wrong) waiting.erase(header.ref.key);
    if (stored != nullptr) (kept && !wrong ? stored : failed)->Increment();
    changed.SignalAll();
    return kept && wrong;
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
  std::optional<std::stop_source> forgotten;
  {
    MutexLock lock(state_->mutex);
    if (!state_->HasRoom(block.header.payload_bytes, max_bytes_)) {
      if (state_->dropped != nullptr) state_->dropped->Increment();
      return;
    }
    forgotten = state_->Take(block);
  }
  if (forgotten) Send(block, *std::move(forgotten));
}

bool Spill::AddUntil(const PutBlock& block, TimePoint deadline) {
  if (below_.Lookup(block.header.ref.key)) return true;
  std::optional<std::stop_source> forgotten;
  {
    MutexLock lock(state_->mutex);
    while (!state_->HasRoom(block.header.payload_bytes, max_bytes_)) {
      if (!state_->changed.WaitUntil(state_->mutex, deadline)) return false;
    }
    forgotten = state_->Take(block);
  }
  if (forgotten) Send(block, *std::move(forgotten));
  return true;
}

bool Spill::WaitIdle(TimePoint deadline) {
  MutexLock lock(state_->mutex);
  while (!state_->waiting.empty()) {
    if (!state_->changed.WaitUntil(state_->mutex, deadline)) return false;
  }
  return true;
}

std::optional<PutBlock> Spill::Lookup(const BlockKey& key) const {
  MutexLock lock(state_->mutex);
  auto it = state_->waiting.find(key);
  if (it == state_->waiting.end()) return std::nullopt;
  return it->second.block;
}

bool Spill::Forget(const CorruptReport& report) {
  MutexLock lock(state_->mutex);
  auto it = state_->waiting.find(report.key);
  if (it == state_->waiting.end()) return false;
  it->second.forgotten.request_stop();
  state_->waiting.erase(it);
  state_->changed.SignalAll();
  return true;
}

void Spill::Send(const PutBlock& block, std::stop_source forgotten) {
  PutBlock copy = block;
  std::shared_ptr<std::byte[]> bytes(new std::byte[block.payload.size]);
  std::memcpy(bytes.get(), block.payload.data, block.payload.size);
  copy.payload = {bytes.get(), block.payload.size, bytes};
  {
    MutexLock lock(state_->mutex);
    auto it = state_->waiting.find(block.header.ref.key);
    if (!forgotten.stop_requested()) it->second.block.payload = copy.payload;
  }
  CallContext context;
  context.cancel = forgotten.get_token();
  below_.Put(context, {std::move(copy)},
             [state = state_, &below = below_, header = block.header,
              forgotten = std::move(forgotten)](std::vector<PutResult> results) {
               if (!state->Finish(header, forgotten, results[0].outcome)) return;
               below.ReportCorrupt({header.ref.key, header.producer_instance,
                                    "reported while it was written to disk"});
             });
}

}  // namespace pagoda::kvstore
