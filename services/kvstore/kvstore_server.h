// pagoda-kvstore as an object: the tier, its gRPC and HTTP faces, put together.
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

namespace pagoda::kvstore {

class KvStoreServer {
 public:
  struct Options {
    std::string grpc_address = "127.0.0.1:7200";  // HOST:PORT; port 0 takes a free one
    std::string http_address = "127.0.0.1:7201";  // health and metrics
    uint64_t ram_bytes = uint64_t{1} << 30;       // of the RAM tier's slab
    std::string shard_id;                         // empty: random
  };

  // Serving and ready when it returns. Errors: INVALID_ARGUMENT naming the option,
  // RESOURCE_EXHAUSTED (over 90 % of the memory that the process may use), UNAVAILABLE (an address
  // cannot be bound).
  static StatusOr<std::unique_ptr<KvStoreServer>> Start(const Options& options);
  ~KvStoreServer();  // Shutdown without grace

  // HOST:PORT with the real port.
  std::string grpc_address() const;
  std::string http_address() const;

  // Not ready at once; running calls have until `grace` has passed. Harmless when repeated.
  void Shutdown(Duration grace);

  // Returns when Shutdown has finished.
  void Wait();

 private:
  struct Parts;
  explicit KvStoreServer(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_KVSTORE_SERVER_H_
