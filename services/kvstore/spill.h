// Carries blocks that RAM evicts to the tier below, in the background: a copy of each waits in
// memory of its own, so that the room in the slab is free at once, and is read there until it is
// below. What waits is bounded; past that a block is dropped and counted, and nobody waits.
//
// Concurrency: every method may be called from any thread.
#ifndef PAGODA_SERVICES_KVSTORE_SPILL_H_
#define PAGODA_SERVICES_KVSTORE_SPILL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>

#include "absl/container/flat_hash_map.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "services/kvstore/lower_tier.h"

namespace pagoda::kvstore {

class Spill {
 public:
  // Some hundred blocks: the burst that a put of one long prompt evicts.
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

  // `below` and `metrics` (null: not measured) outlive this.
  Spill(LowerTier& below, Metrics* metrics, uint64_t max_bytes = kMaxBytes);

  // Copies the block and sends it, unless the tier below holds it. One block may always wait.
  void Add(const PutBlock& block);
  // As Add, but waits for room. False when there was none before `deadline`.
  bool AddUntil(const PutBlock& block, TimePoint deadline);
  // Waits until nothing is on its way. False after `deadline`.
  bool WaitIdle(TimePoint deadline);

  // What waits under the key.
  std::optional<PutBlock> Lookup(const BlockKey& key) const;
  // The block is wrong: it waits no more, and the tier below drops it if it is being written. False
  // when none waits.
  bool Forget(const CorruptReport& report);

 private:
  struct State;
  void Send(const PutBlock& block, std::stop_source forgotten);

  LowerTier& below_;
  const uint64_t max_bytes_;
  const std::shared_ptr<State> state_;  // shared with the answers to come
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_SPILL_H_
