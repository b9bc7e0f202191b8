#include "services/kvstore/rocks_options.h"

#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include <algorithm>

namespace pagoda::kvstore {
namespace {

constexpr uint64_t kBlockCacheBytes = uint64_t{8} << 20;  // index blocks; payloads do not enter it
constexpr uint64_t kOpenFiles = 256;
constexpr uint64_t kBytesPerOpenFile = 32 << 10;  // of its reader
constexpr int kWriteBuffers = 3;                  // one is filled while two are flushed

// Garbage waits in about four flushed buffers until a compaction: small ones keep it a small part.
uint64_t WriteBufferBytes(uint64_t disk_bytes) {
  return std::clamp<uint64_t>(disk_bytes / 64, uint64_t{1} << 20, uint64_t{64} << 20);
}

}  // namespace

rocksdb::Options RocksOptions(uint64_t disk_bytes, rocksdb::Env* env) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  table.cache_index_and_filter_blocks = true;
  rocksdb::Options db;
  db.create_if_missing = true;
  if (env != nullptr) db.env = env;
  db.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  db.write_buffer_size = WriteBufferBytes(disk_bytes);
  db.max_write_buffer_number = kWriteBuffers;
  db.enable_blob_files = true;
  db.min_blob_size = 1024;                   // index records stay in the tables
  db.compression = rocksdb::kNoCompression;  // KV values do not compress
  db.allow_fallocate = false;                // it would take bytes that nobody counts
  db.max_open_files = kOpenFiles;
  db.max_log_file_size = 1 << 20;
  db.keep_log_file_num = 2;
  db.info_log_level = rocksdb::WARN_LEVEL;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  for (auto pool : {rocksdb::Env::LOW, rocksdb::Env::HIGH}) {
    db.env->LowerThreadPoolCPUPriority(pool, rocksdb::CpuPriority::kLow).PermitUncheckedError();
  }
  return db;
}

uint64_t RocksMemoryBytes(uint64_t disk_bytes) {
  return kWriteBuffers * WriteBufferBytes(disk_bytes) + kBlockCacheBytes +
         kOpenFiles * kBytesPerOpenFile;
}

}  // namespace pagoda::kvstore
