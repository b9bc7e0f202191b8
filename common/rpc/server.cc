#include "common/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <mutex>

#include "common/base/address.h"
#include "common/rpc/grpc_library.h"

namespace pagoda::rpc {
namespace {

// Both are process-wide switches of gRPC that must be set before the first server is built.
void EnableHealthAndReflection() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
}

}  // namespace

StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options) {
  PAGODA_ASSIGN_OR_RETURN(HostPort address, ParseHostPort(options.address));
  KeepGrpcLibrary();
  EnableHealthAndReflection();
  grpc::ServerBuilder builder;
  auto server = std::unique_ptr<Server>(new Server);
  builder.AddListeningPort(address.ToString(), grpc::InsecureServerCredentials(), &server->port_);
  builder.SetMaxReceiveMessageSize(options.max_receive_bytes);
  builder.SetMaxSendMessageSize(-1);  // what we send is bounded where it is made
  // Clients ping every 5 s (connection_limits.h), also without calls, which a server refuses by
  // default.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // Two servers on one port would share its connections silently.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  if (options.max_concurrent_streams > 0) {
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams);
  }
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || server->port_ == 0) {
    return absl::UnavailableError("cannot listen on " + address.ToString() +
                                  " (is the port in use?)");
  }
  address.port = static_cast<uint16_t>(server->port_);
  server->address_ = address.ToString();
  server->SetReady(false);
  return server;
}

Server::~Server() { Shutdown(Duration::zero()); }

void Server::SetReady(bool ready) { server_->GetHealthCheckService()->SetServingStatus(ready); }

void Server::Shutdown(Duration grace) {
  if (server_ == nullptr) return;
  auto deadline = std::chrono::system_clock::now() +
                  std::chrono::duration_cast<std::chrono::system_clock::duration>(grace);
  server_->Shutdown(deadline);
  server_->Wait();
}

}  // namespace pagoda::rpc
