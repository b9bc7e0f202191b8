// `pagoda health ADDR`: asks grpc.health.v1.
#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <string>

#include "common/base/address.h"
#include "common/base/flag_set.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "services/ctl/command.h"

namespace pagoda::ctl {
namespace {

// grpc.health.v1.HealthCheckResponse has one enum field, numbered 1, and the request for the whole
// server is empty; so the call needs no generated code: Int32Value has the same encoding.
StatusOr<int> CheckHealth(const std::string& address, std::chrono::milliseconds timeout) {
  grpc::GenericStub stub(rpc::MakeChannel(address, rpc::ChannelKind::kControl));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  grpc::Slice nothing;
  grpc::ByteBuffer request(&nothing, 1), response;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request, &response,
                 [&](grpc::Status status) { done.set_value(std::move(status)); });
  PAGODA_RETURN_IF_ERROR(rpc::FromGrpc(done.get_future().get()));
  google::protobuf::Int32Value serving_status;
  grpc::ProtoBufferReader reader(&response);
  if (!serving_status.ParseFromZeroCopyStream(&reader)) {
    return absl::InternalError("the health answer is not a HealthCheckResponse");
  }
  return serving_status.value();
}

}  // namespace

int RunHealth(int argc, const char* const* argv) {
  std::string address;
  int timeout_ms = 2000;
  FlagSet flags("pagoda health", "Asks a service whether it is ready: exit status 0 if it is.");
  flags.AddPositional("address", "HOST:PORT of its gRPC listener", &address, /*required=*/true);
  flags.Add("timeout-ms", "how long to wait for the answer", &timeout_ms, 1, 3'600'000);
  if (std::optional<int> status = flags.Parse(argc, argv)) return *status;
  if (Status parsed = ParseHostPort(address).status(); !parsed.ok()) {
    std::fprintf(stderr, "pagoda health: %s\n", std::string(parsed.message()).c_str());
    return 2;
  }
  constexpr int kServing = 1, kNotServing = 2;
  StatusOr<int> serving = CheckHealth(address, std::chrono::milliseconds(timeout_ms));
  if (!serving.ok()) {
    std::fprintf(stderr, "%s: no answer: %s\n", address.c_str(),
                 std::string(serving.status().message()).c_str());
    return 1;
  }
  std::printf("%s: %s\n", address.c_str(),
              *serving == kServing      ? "serving"
              : *serving == kNotServing ? "not serving"
                                        : "unknown");
  return *serving == kServing ? 0 : 1;
}

}  // namespace pagoda::ctl
