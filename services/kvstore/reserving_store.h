// A BlockStore that gives out the room for a block before its bytes have come: the receiver of a
// stream copies them into their final place, once, with the checksum in the same pass. A stream
// reads and puts its blocks one by one; what it does under one call number counts as one call, so
// that the blocks of a chain age together, the deepest first.
//
// Concurrency: every method may be called from any thread; a Reservation belongs to one thread at a
// time.
#ifndef PAGODA_SERVICES_KVSTORE_RESERVING_STORE_H_
#define PAGODA_SERVICES_KVSTORE_RESERVING_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/kv/block_store.h"
#include "services/kvstore/eviction/interface.h"

namespace pagoda::kvstore {

// Room for one payload. Letting go of it without Commit gives the room back. REQUIRES: the store
// outlives it.
class Reservation {
 public:
  virtual ~Reservation() = default;

  // header.payload_bytes of memory to write to.
  virtual std::byte* payload() = 0;
  virtual const RecordHeader& header() const = 0;

  // The payload was written and has the checksum `crc`: the block becomes visible. Answers kStored;
  // kCorrupt when `crc` is not the header's; kHave or kDivergent when another put was faster.
  virtual PutResult Commit(uint32_t crc) = 0;
};

// Either room, or why there is none.
struct ReserveResult {
  std::unique_ptr<Reservation> room;
  PutResult refusal;  // kHave, kDivergent, kNoRoom or kCorrupt; of no meaning when there is room
};

class ReservingStore : public BlockStore {
 public:
  virtual CallNumber StartCall() = 0;
  virtual void GetPart(CallNumber call, const CallContext& context, std::vector<BlockRef> refs,
                       std::shared_ptr<BlockSink> sink) = 0;
  virtual ReserveResult Reserve(CallNumber call, const RecordHeader& header,
                                const RecordMeta& meta) = 0;

  void Get(const CallContext& context, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) final {
    GetPart(StartCall(), context, std::move(refs), std::move(sink));
  }
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_RESERVING_STORE_H_
