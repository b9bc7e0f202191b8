// The one interface of every tier of the KV cache: RAM, disk, a remote store, and what is composed
// of them. It moves blocks by key and says for each block what became of it. Purging, draining and
// counting are block_store_admin.h.
//
// - Asynchronous: a call returns at once or after bounded work without waiting; its answers may
//   come on the calling thread, before the call returns, or on another. They come exactly once,
//   whatever fails.
// - A missing block is an answer, not an error. A failure is one of the blocks it hit, never of the
//   call.
// - Put is idempotent: a key's bytes are equal on every worker. The store does not trust this: a
//   put whose payload checksum or length differs from what is held is refused (DIVERGENT), the
//   first stays.
// - A result owns what it points into.
// - Callbacks and sinks must not block, and must not wait for another call to the same store.
//
// Concurrency: every method may be called from any thread; the calls of one sink never overlap.
#ifndef PAGODA_COMMON_KV_BLOCK_STORE_H_
#define PAGODA_COMMON_KV_BLOCK_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/kv/block_key.h"
#include "common/kv/call_context.h"
#include "common/kv/record.h"

namespace pagoda {

// Most blocks that one call names: 524,288 tokens at 32 a block, 512 KiB of keys on the wire. A
// call with more gets INVALID_ARGUMENT for each of its blocks.
inline constexpr size_t kMaxBlocksPerCall = 16384;

// Bytes and what keeps them alive.
struct BlockView {
  const std::byte* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;

  std::string_view bytes() const { return {reinterpret_cast<const char*>(data), size}; }
};

enum class Tier : uint8_t { kNone, kRam, kDisk };

// Where a block is held; a block may be in both tiers.
struct Held {
  bool in_ram = false;
  bool on_disk = false;

  explicit operator bool() const { return in_ram || on_disk; }
  friend bool operator==(const Held&, const Held&) = default;
};

struct FindResult {
  Status status;             // why some blocks are not known about; those count as not held
  std::vector<Held> blocks;  // one for each ref
};

enum class GetOutcome : uint8_t {
  kFound,
  kMissing,
  kCorrupt,  // held, but header or payload failed their checks; the bytes must not be used
  kRefused,  // the sink did not want it
  kFailed,   // see the status: deadline, cancelled, unavailable
};

struct GetResult {
  GetOutcome outcome = GetOutcome::kFailed;
  Tier tier = Tier::kNone;
  Status status;   // not OK with kCorrupt, kRefused and kFailed
  BlockView lent;  // with kFound after Destination::Lend()
};

// Where the payload of a block goes.
struct Destination {
  // Memory of the sink with room for header.payload_bytes. Copy and checksum are one pass.
  static Destination Memory(std::byte* memory) { return {memory}; }
  // "Lend me yours": the store answers with a view and its owner. The store need not have checked
  // the payload's checksum: whoever copies the bytes does (record.h, CheckPayload).
  static Destination Lend() { return {nullptr}; }

  std::byte* memory;
};

// Takes the blocks of one Get. Lives until Finished has returned.
class BlockSink {
 public:
  virtual ~BlockSink() = default;

  // Block `index` of the call was found; its header has passed its own checksum and carries the key
  // that was asked for. The sink compares the rest (record.h, CheckExpected) and says where the
  // payload goes; an error refuses the block. Called at most once a block, and not after a cancel
  // was seen.
  virtual StatusOr<Destination> Begin(size_t index, const RecordHeader& header) = 0;

  // The answer for block `index`, exactly once for every block, in any order. From now on the store
  // does not touch the memory that Begin gave (also after a cancel: it has let go). With any
  // outcome but kFound that memory holds nothing of worth.
  virtual void Done(size_t index, GetResult result) = 0;

  // After the last Done.
  virtual void Finished() = 0;
};

struct PutBlock {
  RecordHeader header;
  RecordMeta meta;
  BlockView payload;  // its owner is released when the store has let go, soon after the answer
};

enum class PutOutcome : uint8_t {
  kStored,
  kHave,       // held already, with the same bytes
  kDivergent,  // held already, with other bytes: the first stays
  kNoRoom,     // nothing could make way for it; try again after retry_ms, or drop it
  kCorrupt,    // header or payload do not fit each other
  kFailed,     // see the status
};

struct PutResult {
  PutOutcome outcome = PutOutcome::kFailed;
  uint32_t retry_ms = 0;
  Status status;  // not OK with kDivergent, kNoRoom, kCorrupt and kFailed
};

// What a reader found wrong with a block that it was given.
struct CorruptReport {
  BlockKey key;
  uint64_t producer_instance = 0;  // from the block's header; 0: it could not be read
  std::string reason;
};

class BlockStore {
 public:
  using FindCallback = std::function<void(FindResult)>;
  using PutCallback = std::function<void(std::vector<PutResult>)>;  // one for each block

  virtual ~BlockStore() = default;

  // Which blocks are held now. Never pins or touches them: any of them may be gone at the next
  // call.
  virtual void FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                           FindCallback done) = 0;

  virtual void Get(const CallContext& context, std::vector<BlockRef> refs,
                   std::shared_ptr<BlockSink> sink) = 0;

  virtual void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) = 0;

  // A block of this store failed a check of its reader (checksums, or what CheckExpected compares):
  // whoever holds it forgets it. Fire and forget: never waits, has no answer, and may be lost.
  virtual void ReportCorrupt(const CorruptReport& report) = 0;
};

// For implementations: OK, or why a call must not start (CANCELLED, DEADLINE_EXCEEDED, or
// INVALID_ARGUMENT with more than kMaxBlocksPerCall blocks).
Status CheckCall(const CallContext& context, size_t blocks, TimePoint now);

// For implementations: the whole call's answer when nothing could be done.
void FailGet(const Status& status, size_t blocks, BlockSink& sink);
FindResult FailedFind(const Status& status, size_t blocks);
std::vector<PutResult> FailedPut(const Status& status, size_t blocks);

}  // namespace pagoda

#endif  // PAGODA_COMMON_KV_BLOCK_STORE_H_
