// What the store answered, on its way into the engine.
//
// Concurrency: plain values.
#ifndef PAGODA_SERVICES_WORKER_TRANSFER_EVENT_H_
#define PAGODA_SERVICES_WORKER_TRANSFER_EVENT_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "services/worker/sequence.h"

namespace pagoda::worker {

// Which blocks the store holds. Nothing, when it failed or did not answer in time.
struct LookupDone {
  SequenceId sequence{};
  std::vector<bool> held;  // [block index]
};

// The writer has let go of a block, once for each entry of a load.
struct BlockLoaded {
  LoadId load{};
  int32_t entry = 0;
  bool ok = false;  // all bytes are there and checked; otherwise they are worth nothing
  BlockSource source = BlockSource::kRam;
  uint64_t producer = 0;  // the instance that computed the block
};

using TransferEvent = std::variant<LookupDone, BlockLoaded>;

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_TRANSFER_EVENT_H_
