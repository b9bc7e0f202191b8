#include "common/rpc/grpc_library.h"

#include <grpc/grpc.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>

#include <future>

namespace pagoda::rpc {
namespace {

// A channel that once made a callback call holds the callback queue for as long as it lives. The
// address cannot be connected to, so the call fails at once and nothing is sent.
void KeepCallbackQueue() {
  static auto* channel = new std::shared_ptr<grpc::Channel>(
      grpc::CreateChannel("unix:/dev/null", grpc::InsecureChannelCredentials()));
  grpc::GenericStub stub(*channel);
  grpc::ClientContext context;
  const grpc::Slice nothing("");
  grpc::ByteBuffer request(&nothing, 1), response;
  std::promise<void> done;
  stub.UnaryCall(&context, "/none/None", {}, &request, &response,
                 [&done](const grpc::Status&) { done.set_value(); });
  done.get_future().wait();
}

}  // namespace

void KeepGrpcLibrary() {
  static const bool kept = (grpc_init(), KeepCallbackQueue(), true);
  static_cast<void>(kept);
}

}  // namespace pagoda::rpc
