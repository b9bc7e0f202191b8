// A BlockStore whose answers go wrong block by block, as a script or chance decides. What can be
// seen is answered as a store must answer it; what only the reader can see reaches the reader.
//
// What a fault does to a call that it does not name below: nothing.
//
//   fault       FindMissing       Get                                             Put
//   kFail       not known about   broken off half-way: FAILED                     FAILED, not kept
//   kMissing    not held          MISSING, whatever was promised                  kept by nobody:
//   STORED kPromise    held, even if it is not kNoRoom NO_ROOM kCorrupt                      a bit
//   of the payload flips: CORRUPT, or lent as it is kTruncate                     the payload is
//   too short: CORRUPT kForeign                      the header names another space: for the sink
//   to refuse kDivergent                    other bytes under a valid checksum: nobody can see it
//                                                                                 DIVERGENT, not
//                                                                                 kept
//
// Concurrency: every method may be called from any thread; the chooser is called under a lock.
#ifndef PAGODA_COMMON_KV_TESTING_FAULTY_STORE_H_
#define PAGODA_COMMON_KV_TESTING_FAULTY_STORE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "common/kv/block_store.h"

namespace pagoda::testing {

enum class Fault : uint8_t {
  kNone,
  kFail,
  kMissing,
  kPromise,
  kNoRoom,
  kCorrupt,
  kTruncate,
  kForeign,
  kOtherBlock,
  kDivergent,
};
inline constexpr size_t kNumFaults = 10;

enum class FaultyCall : uint8_t { kFind, kGet, kPut };

class FaultyStore final : public BlockStore {
 public:
  // What goes wrong with one block of a call.
  using Choose = std::function<Fault(FaultyCall call, const BlockRef& ref)>;

  FaultyStore(std::shared_ptr<BlockStore> inner, Choose choose)
      : inner_(std::move(inner)), choose_(std::move(choose)) {}

  // From now on; what is under way goes on as it began.
  void SetChooser(Choose choose);

  // How often a fault was chosen.
  uint64_t count(Fault fault) const;

  void FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                   FindCallback done) override;
  void Get(const CallContext& context, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) override;
  void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) override;
  void ReportCorrupt(const CorruptReport& report) override { inner_->ReportCorrupt(report); }

 private:
  std::vector<Fault> ChooseFor(FaultyCall call, const std::vector<BlockRef>& refs);

  const std::shared_ptr<BlockStore> inner_;
  mutable Mutex mutex_;
  Choose choose_ ABSL_GUARDED_BY(mutex_);
  std::array<uint64_t, kNumFaults> counts_ ABSL_GUARDED_BY(mutex_) = {};
};

// Chooses by chance, each fault as often as its rate says (0 to 1, together at most 1). Equal seeds
// give equal choices.
FaultyStore::Choose RandomFaults(uint64_t seed, std::map<Fault, double> rates);

}  // namespace pagoda::testing

#endif  // PAGODA_COMMON_KV_TESTING_FAULTY_STORE_H_
