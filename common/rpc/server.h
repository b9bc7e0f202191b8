// A gRPC server as all Pagoda services use it: limits, keepalive, health and reflection.
//
// Concurrency: Start once; port, SetReady and Shutdown from any thread.
#ifndef PAGODA_COMMON_RPC_SERVER_H_
#define PAGODA_COMMON_RPC_SERVER_H_

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace pagoda::rpc {

class Server {
 public:
  struct Options {
    std::string address;                   // HOST:PORT; port 0 takes a free one
    std::vector<grpc::Service*> services;  // not owned; must outlive the server
    int max_receive_bytes = 4 << 20;       // of one message
    int max_concurrent_streams = 0;        // per connection; 0: gRPC's default
  };

  // Errors: INVALID_ARGUMENT for the address, UNAVAILABLE when it cannot be bound. The server
  // starts not ready.
  static StatusOr<std::unique_ptr<Server>> Start(const Options& options);

  ~Server();

  int port() const { return port_; }
  // "HOST:PORT" with the real port.
  std::string address() const { return address_; }

  // What grpc.health.v1.Health answers for the service "".
  void SetReady(bool ready);

  // No new calls; running ones have until `grace` has passed, then they are cancelled. Returns when
  // all are done. Harmless when repeated.
  void Shutdown(Duration grace);

 private:
  Server() = default;

  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::string address_;
};

}  // namespace pagoda::rpc

#endif  // PAGODA_COMMON_RPC_SERVER_H_
