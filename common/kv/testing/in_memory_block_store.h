// A BlockStore for tests: a map under a lock, answers on the calling thread, a budget of bytes
// without eviction. It shows the contract in the fewest lines and stands in for a real store
// elsewhere.
//
// Concurrency: every method may be called from any thread.
#ifndef PAGODA_COMMON_KV_TESTING_IN_MEMORY_BLOCK_STORE_H_
#define PAGODA_COMMON_KV_TESTING_IN_MEMORY_BLOCK_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "common/kv/block_store.h"

namespace pagoda::testing {

class InMemoryBlockStore : public BlockStore {
 public:
  explicit InMemoryBlockStore(uint64_t payload_bytes_limit = UINT64_MAX,
                              Clock* clock = SystemClock::Get())
      : limit_(payload_bytes_limit), clock_(clock) {}

  void FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                   FindCallback done) override;
  void Get(const CallContext& context, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) override;
  void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) override;
  void ReportCorrupt(const CorruptReport& report) override { Erase(report.key); }

  // Flips a bit of a held payload, or forgets the block. False when it is not held.
  bool Corrupt(const BlockKey& key);
  bool Erase(const BlockKey& key);
  size_t num_blocks() const;

 private:
  std::shared_ptr<const PutBlock> Find(const BlockKey& key) const;
  PutResult PutOne(PutBlock block);

  const uint64_t limit_;
  Clock* const clock_;  // of the callers' deadlines
  mutable Mutex mutex_;
  std::map<BlockKey, std::shared_ptr<const PutBlock>> blocks_ ABSL_GUARDED_BY(mutex_);
  uint64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pagoda::testing

#endif  // PAGODA_COMMON_KV_TESTING_IN_MEMORY_BLOCK_STORE_H_
