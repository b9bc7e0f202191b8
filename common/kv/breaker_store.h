// A circuit breaker in front of another store: when that one fails several times in a row, it is
// left alone for a while, and nobody waits for it at all (R33).
//
//   closed   calls go through. Lookups, gets and puts are counted apart: a success forgets the
//            failures of its own kind only, so that fast lookups do not hide reads that never come.
//            kFailuresToOpen failures, of all kinds together, open it.
//   open     every call is answered at once as failed (UNAVAILABLE). The first call after the pause
//            also sends a probe, a lookup of nothing; the call itself does not wait for it.
//   probing  as open, until the probe is answered. A failure doubles the pause. A success closes,
//            and says something about lookups only: while gets or puts are not known to work again,
//            the next failure opens, with the pause doubled.
//
// What counts, of a whole call:
//   success  any answer of the store: held, missing, stored, had, divergent, corrupt, refused
//   failure  UNAVAILABLE, DEADLINE_EXCEEDED or INTERNAL, also of one block; and a call that was
//            cancelled after its deadline had passed
//   neither  what the caller called off, what was never sent (a passed deadline, too many blocks,
//            too many calls), NO_ROOM, and every other error
//
// Concurrency: every method may be called from any thread. Answers come as the inner store gives
// them, or on the calling thread.
#ifndef PAGODA_COMMON_KV_BREAKER_STORE_H_
#define PAGODA_COMMON_KV_BREAKER_STORE_H_

#include <functional>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/base/metrics.h"
#include "common/kv/block_store.h"

namespace pagoda {

class BreakerStore final : public BlockStore {
 public:
  static constexpr int kFailuresToOpen = 3;
  static constexpr Duration kFirstPause = std::chrono::milliseconds(500);
  static constexpr Duration kMaxPause = std::chrono::seconds(10);
  // A store that has said nothing to a lookup of nothing by then is not well yet.
  static constexpr Duration kProbeTimeout = std::chrono::seconds(1);

  struct Options {
    // Of each pause up to a fifth is taken off, so that many clients do not come back at once.
    std::function<double()> random = RandomFraction;  // [0, 1)
    Clock* clock = SystemClock::Get();
    Metrics* metrics = nullptr;  // null: not measured; outlives the store and its calls
  };

  static double RandomFraction();

  // `inner` outlives this.
  BreakerStore(BlockStore* inner, const Options& options);
  ~BreakerStore() override;

  // Whether calls go through now.
  bool closed() const;

  void FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                   FindCallback done) override;
  void Get(const CallContext& context, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) override;
  void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) override;
  void ReportCorrupt(const CorruptReport& report) override;

 private:
  class Circuit;
  class WatchingSink;

  // OK: the call may go to the inner store. Otherwise its answer.
  Status Admit(const CallContext& context, size_t blocks);

  BlockStore* const inner_;
  const std::shared_ptr<Circuit> circuit_;  // calls that run keep it
};

}  // namespace pagoda

#endif  // PAGODA_COMMON_KV_BREAKER_STORE_H_
