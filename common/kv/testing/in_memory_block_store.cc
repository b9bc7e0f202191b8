#include "common/kv/testing/in_memory_block_store.h"

#include <string>
#include <utility>

#include "common/base/crc32c.h"
#include "common/kv/testing/test_blocks.h"

namespace pagoda::testing {
namespace {

GetResult Deliver(size_t index, const std::shared_ptr<const PutBlock>& block, BlockSink& sink) {
  if (block == nullptr) return {GetOutcome::kMissing, Tier::kNone, absl::OkStatus(), {}};
  StatusOr<Destination> destination = sink.Begin(index, block->header);
  if (!destination.ok()) {
    return {GetOutcome::kRefused, Tier::kRam, destination.status(), {}};
  }
  if (destination->memory == nullptr) {
    BlockView view{block->payload.data, block->payload.size, block};
    return {GetOutcome::kFound, Tier::kRam, absl::OkStatus(), std::move(view)};
  }
  uint32_t crc = CopyWithCrc32c(destination->memory, block->payload.data, block->payload.size);
  if (crc != block->header.payload_crc) {
    return {GetOutcome::kCorrupt, Tier::kRam, absl::DataLossError("payload: wrong checksum"), {}};
  }
  return {GetOutcome::kFound, Tier::kRam, absl::OkStatus(), {}};
}

}  // namespace

std::shared_ptr<const PutBlock> InMemoryBlockStore::Find(const BlockKey& key) const {
  MutexLock lock(mutex_);
  auto it = blocks_.find(key);
  return it == blocks_.end() ? nullptr : it->second;
}

void InMemoryBlockStore::FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                                     FindCallback done) {
  Status status = CheckCall(context, refs.size(), clock_->Now());
  if (!status.ok()) return done(FailedFind(status, refs.size()));
  FindResult result;
  for (const BlockRef& ref : refs) result.blocks.push_back({Find(ref.key) != nullptr, false});
  done(std::move(result));
}

void InMemoryBlockStore::Get(const CallContext& context, std::vector<BlockRef> refs,
                             std::shared_ptr<BlockSink> sink) {
  Status status = CheckCall(context, refs.size(), clock_->Now());
  if (!status.ok()) return FailGet(status, refs.size(), *sink);
  for (size_t i = 0; i < refs.size(); ++i) {
    if (context.cancel.stop_requested()) {
      sink->Done(i, {GetOutcome::kFailed, Tier::kNone, absl::CancelledError("cancelled"), {}});
    } else {
      sink->Done(i, Deliver(i, Find(refs[i].key), *sink));
    }
  }
  sink->Finished();
}

void InMemoryBlockStore::Put(const CallContext& context, std::vector<PutBlock> blocks,
                             PutCallback done) {
  Status status = CheckCall(context, blocks.size(), clock_->Now());
  if (!status.ok()) return done(FailedPut(status, blocks.size()));
  std::vector<PutResult> results;
  for (PutBlock& block : blocks) results.push_back(PutOne(std::move(block)));
  done(std::move(results));
}

PutResult InMemoryBlockStore::PutOne(PutBlock block) {
  if (Status status = CheckHeader(block.header); !status.ok()) {
    return {PutOutcome::kCorrupt, 0, status};
  }
  if (Status status = CheckPayload(block.header, block.payload.bytes()); !status.ok()) {
    return {PutOutcome::kCorrupt, 0, status};
  }
  MutexLock lock(mutex_);
  if (auto it = blocks_.find(block.header.ref.key); it != blocks_.end()) {
    const RecordHeader& held = it->second->header;
    if (held.payload_crc != block.header.payload_crc ||
        held.payload_bytes != block.header.payload_bytes) {
      return {PutOutcome::kDivergent, 0, absl::AlreadyExistsError("held with other bytes")};
    }
    return {PutOutcome::kHave, 0, absl::OkStatus()};
  }
  if (block.header.payload_bytes > limit_ - used_) {
    return {PutOutcome::kNoRoom, 100, absl::ResourceExhaustedError("full")};
  }
  used_ += block.header.payload_bytes;
  // A copy: the caller's memory is its own again once the answer has come.
  block.payload = OwnedView(std::string(block.payload.bytes()));
  BlockKey key = block.header.ref.key;
  blocks_.emplace(key, std::make_shared<const PutBlock>(std::move(block)));
  return {PutOutcome::kStored, 0, absl::OkStatus()};
}

bool InMemoryBlockStore::Corrupt(const BlockKey& key) {
  MutexLock lock(mutex_);
  auto it = blocks_.find(key);
  if (it == blocks_.end()) return false;
  PutBlock block = *it->second;
  std::string bytes(block.payload.bytes());
  bytes[bytes.size() / 2] ^= 0x10;
  block.payload = OwnedView(std::move(bytes));
  it->second = std::make_shared<const PutBlock>(std::move(block));
  return true;
}

bool InMemoryBlockStore::Erase(const BlockKey& key) {
  MutexLock lock(mutex_);
  auto it = blocks_.find(key);
  if (it == blocks_.end()) return false;
  used_ -= it->second->header.payload_bytes;
  blocks_.erase(it);
  return true;
}

size_t InMemoryBlockStore::num_blocks() const {
  MutexLock lock(mutex_);
  return blocks_.size();
}

}  // namespace pagoda::testing
