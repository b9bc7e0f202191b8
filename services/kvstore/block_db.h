// Blocks in a RocksDB: an index in RAM, records in its files (FORMAT.md). Synchronous.
//
// A block gets the next sequence number; the oldest go first. What makes way for a block is deleted
// in the batch that writes it, and batches reach the disk in order: a kill at any point leaves the
// state after some earlier batch, within the limit, every block whole. Values have no write-ahead
// log, so what was not flushed is lost. A block that was forgotten because it is corrupt is logged
// there, so it stays away.
//
// Concurrency: Write and Flush from one thread; the rest from any. No lock is held across a disk
// call or a sink's method.
#ifndef PAGODA_SERVICES_KVSTORE_BLOCK_DB_H_
#define PAGODA_SERVICES_KVSTORE_BLOCK_DB_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "services/kvstore/disk_metrics.h"
#include "services/kvstore/lower_tier.h"
#include "services/kvstore/owner_usage.h"

namespace rocksdb {
class DB;
class Env;
struct WriteOptions;
}  // namespace rocksdb

namespace pagoda::kvstore {

class BlockDb {
 public:
  struct Options {
    std::string folder;  // made when missing
    uint64_t bytes = 0;  // limit of keys, headers, meta and payloads together
    // Nothing is written while the file system has less free than this: others need it too.
    uint64_t min_free_bytes = uint64_t{64} << 20;
    // How long a disk that failed a write is left alone.
    Duration retry_after = std::chrono::seconds(10);
    Clock* clock = SystemClock::Get();
    Metrics* metrics = nullptr;   // null: not measured; outlives this
    rocksdb::Env* env = nullptr;  // null: the system's; outlives this
  };

  // An upper bound of what a block costs in RAM.
  static constexpr uint64_t kIndexBytesPerBlock = 320;
  // Blocks are not smaller than this on average: bounds the index to 0.5 % of the disk.
  static constexpr uint64_t kMinBytesPerBlock = 64 << 10;
  // RAM that RocksDB takes: buffers of what is not written yet, its cache, its tables' readers.
  static uint64_t MemoryBytes(uint64_t disk_bytes);

  // Reads the index. Errors: INVALID_ARGUMENT (no bytes), DATA_LOSS (what is there cannot be read
  // and should be discarded), UNAVAILABLE (the disk refuses).
  static StatusOr<std::unique_ptr<BlockDb>> Open(const Options& options);
  ~BlockDb();  // flushes

  std::optional<IndexedBlock> Lookup(const BlockKey& key) const;
  // As BlockSink wants it, but for Done. A block that fails its checks is forgotten for good.
  GetResult Read(size_t index, const BlockKey& key, BlockSink& sink);
  PutResult Write(const PutBlock& block);
  // A reader found the block wrong: it is forgotten for good.
  void ReportCorrupt(const CorruptReport& report);
  // What was written survives a kill from now on.
  Status Flush();

  StoreStats Stats() const;
  // Entries = owners = used bytes, within the limit; the two indexes agree. Error: INTERNAL.
  Status CheckIntegrity() const;

 private:
  struct Entry {
    BlockKey key;
    uint64_t bytes = 0;  // what it counts
    IndexedBlock block;
    OwnerUsage::Owner owner{};
  };
  using Sequence = uint64_t;

  explicit BlockDb(const Options& options);

  Status ReadIndex();
  Status DropOverLimit();
  Status Delete(const rocksdb::WriteOptions& how, const std::vector<Sequence>& sequences);
  // The oldest that must go so that `bytes` more fit.
  std::vector<Sequence> Victims(uint64_t bytes, uint64_t blocks) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Add(Sequence sequence, Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Drop(Sequence sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShowGauges() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False when it had gone.
  bool Forget(Sequence sequence, const BlockKey& key, const Status& why);
  GetResult Quarantine(Sequence sequence, const BlockKey& key, const Status& why);
  GetResult Unreadable(Sequence sequence, const Status& why);
  // OK when a write may be tried now.
  Status CheckWritable(uint64_t bytes);
  void SetUp(const Status& status);

  const Options options_;
  const uint64_t max_blocks_;
  const std::unique_ptr<DiskMetrics> metrics_;  // null: not measured
  std::unique_ptr<rocksdb::DB> db_;
  Sequence next_ = 1;          // of the writing thread
  Status write_status_;        // likewise
  TimePoint write_failed_at_;  // likewise

  mutable Mutex mutex_;
  std::map<Sequence, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<BlockKey, Sequence> index_ ABSL_GUARDED_BY(mutex_);
  OwnerUsage owners_ ABSL_GUARDED_BY(mutex_);
  uint64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t evicted_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t divergent_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t corrupt_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_BLOCK_DB_H_
