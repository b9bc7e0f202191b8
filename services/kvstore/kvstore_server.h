// pagoda-kvstore as an object: the tiers, their gRPC and HTTP faces, put together.
//
// Concurrency: Start once; the other methods from any thread, none of which may still run when it
// is destroyed.
#ifndef PAGODA_SERVICES_KVSTORE_KVSTORE_SERVER_H_
#define PAGODA_SERVICES_KVSTORE_KVSTORE_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "services/kvstore/stream_limits.h"

namespace pagoda::kvstore {

class KvStoreServer {
 public:
  struct Options {
    std::string grpc_address = "127.0.0.1:7200";  // HOST:PORT; port 0 takes a free one
    std::string http_address = "127.0.0.1:7201";  // health and metrics
    uint64_t ram_bytes = uint64_t{1} << 30;       // of the RAM tier's slab
    // Where blocks that RAM has no room for are kept, and its limit. Empty: RAM only.
    std::string data_dir;
    uint64_t disk_bytes = uint64_t{16} << 30;
    std::string shard_id;  // empty: random; with a data_dir it is kept there
    StreamLimits streams;
  };

  // Serving and ready when it returns. Errors: INVALID_ARGUMENT naming the option,
  // RESOURCE_EXHAUSTED (over 90 % of the memory that the process may use), FAILED_PRECONDITION
  // (another store uses data_dir), UNAVAILABLE (an address cannot be bound). A data_dir whose
  // database cannot be opened leaves the store with RAM only: logged, kvstore_disk_up is 0.
  static StatusOr<std::unique_ptr<KvStoreServer>> Start(const Options& options);
  ~KvStoreServer();  // Shutdown without grace

  // HOST:PORT with the real port.
  std::string grpc_address() const;
  std::string http_address() const;

  // Not ready at once; running calls have until `grace` has passed. Then what RAM holds is brought
  // to disk, for at most kSpillLimit. Harmless when repeated.
  void Shutdown(Duration grace);

  // Returns when Shutdown has finished.
  void Wait();

  // Less than the 5 s that `pagoda up` gives, with room for the grace.
  static constexpr Duration kSpillLimit = std::chrono::seconds(3);

 private:
  struct Parts;
  explicit KvStoreServer(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_KVSTORE_SERVER_H_
