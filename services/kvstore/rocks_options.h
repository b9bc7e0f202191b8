// How RocksDB is set up to hold blocks, and what RAM that costs.
//
// Concurrency: plain functions.
#ifndef PAGODA_SERVICES_KVSTORE_ROCKS_OPTIONS_H_
#define PAGODA_SERVICES_KVSTORE_ROCKS_OPTIONS_H_

#include <cstdint>

namespace rocksdb {
class Env;
struct Options;
}  // namespace rocksdb

namespace pagoda::kvstore {

// `disk_bytes`: the limit of what is kept. `env`: null is the system's, of which the background
// threads get a low priority.
rocksdb::Options RocksOptions(uint64_t disk_bytes, rocksdb::Env* env);

// An upper bound: buffers of what is not written yet, the cache, the readers of tables.
uint64_t RocksMemoryBytes(uint64_t disk_bytes);

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_ROCKS_OPTIONS_H_
