// A KV store in the test's own process and a client for it, whose time limits only end hangs.
#ifndef PAGODA_SERVICES_KVSTORE_TESTING_TEST_SERVER_H_
#define PAGODA_SERVICES_KVSTORE_TESTING_TEST_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/rpc/connection_limits.h"
#include "common/rpc/remote_block_store.h"
#include "services/kvstore/kvstore_server.h"

namespace pagoda::testing {

// A silence that only ends hangs: what a test moves may take long on a slow machine.
inline constexpr auto kPatience = std::chrono::minutes(4);
inline constexpr rpc::ConnectionLimits kPatientConnection{
    .connect = kPatience, .ping_interval = kPatience, .ping_timeout = kPatience};

inline rpc::RemoteBlockStore::Options PatientClient(const std::string& address) {
  return {.address = address,
          .max_call = kPatience,
          .report_timeout = kPatience,
          .connection = kPatientConnection};
}

inline std::unique_ptr<kvstore::KvStoreServer> StartServer(uint64_t ram_bytes = 16 << 20) {
  kvstore::KvStoreServer::Options options;
  options.grpc_address = options.http_address = "127.0.0.1:0";
  options.ram_bytes = ram_bytes;
  options.streams.get_stall = options.streams.put_stall = kPatience;
  return *kvstore::KvStoreServer::Start(options);
}

}  // namespace pagoda::testing

#endif  // PAGODA_SERVICES_KVSTORE_TESTING_TEST_SERVER_H_
