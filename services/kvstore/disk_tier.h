// KV blocks on disk: a BlockDb with threads of its own, so that no caller waits for the disk. Reads
// run on one thread; writes on another of the lowest priority, which also flushes what has waited
// long enough. Both queues are bounded: what finds one full is answered as failed, at once.
//
// Concurrency: every method may be called from any thread. FindMissing, Lookup and Stats answer
// from memory on the calling thread; Get and Put on the tier's threads, or at once when they fail.
#ifndef PAGODA_SERVICES_KVSTORE_DISK_TIER_H_
#define PAGODA_SERVICES_KVSTORE_DISK_TIER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/executor.h"
#include "services/kvstore/block_db.h"

namespace pagoda::kvstore {

class DiskTier final : public LowerTier {
 public:
  struct Options {
    BlockDb::Options db;
    // What a kill may lose; shorter makes more and smaller files.
    Duration flush_interval = std::chrono::seconds(30);
    size_t read_queue = 1024;  // calls
    size_t write_queue = 1024;
  };

  // Errors: as BlockDb::Open.
  static StatusOr<std::unique_ptr<DiskTier>> Open(const Options& options);
  ~DiskTier() override;

  void FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                   FindCallback done) override;
  void Get(const CallContext& context, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) override;
  void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) override;
  void ReportCorrupt(const CorruptReport& report) override;
  std::optional<IndexedBlock> Lookup(const BlockKey& key) const override;
  StatusOr<StoreStats> Stats() override;

  // Finishes what was accepted and flushes it; later calls are answered as failed.
  void Stop();

  Status CheckIntegrity() const { return db_->CheckIntegrity(); }

 private:
  DiskTier(const Options& options, std::unique_ptr<BlockDb> db);
  void WriteLoop();

  const Options options_;
  Clock& clock_;
  const std::unique_ptr<BlockDb> db_;
  Executor reads_;
  BoundedQueue<std::function<void()>> writes_;
  std::atomic<bool> stopping_{false};
  Mutex stop_mutex_;
  std::thread writer_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_DISK_TIER_H_
