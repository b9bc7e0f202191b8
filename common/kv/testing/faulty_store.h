// A BlockStore whose answers go wrong block by block, as a script or chance decides. What can be
// seen is answered as a store must answer it; what only the reader can see reaches the reader.
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

// What goes wrong with a block, by call; nothing in a call that is not named.
enum class Fault : uint8_t {
  kNone,
  // Find: not known about. Get: broken off half-way. Put: not kept.
  kFail,
  // Find: not held. Get: missing, whatever was promised. Put: said to be stored, and forgotten.
  kMissing,
  // Find: held, even if it is not.
  kPromise,
  // Put: no room.
  kNoRoom,
  // Get: a bit of the payload flips. Corrupt, or lent as it is.
  kCorrupt,
  // Get: the payload lacks a byte. Corrupt, or lent as it is.
  kTruncate,
  // Get: the header names another space, or another namespace: for the sink to refuse.
  kForeign,
  kOtherTenant,
  // Get: the header names another key. No sink can expect that, so only for servers, whose clients
  // must see it.
  kOtherBlock,
  // Get: other bytes under a valid checksum; nobody can see it. Put: divergent, not kept.
  kDivergent,
};
inline constexpr size_t kNumFaults = 11;

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
