#include "common/rpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "common/rpc/grpc_library.h"

namespace pagoda::rpc {
namespace {

int Milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, ChannelKind kind,
                                           const ConnectionLimits& limits) {
  KeepGrpcLibrary();
  int max_bytes = kind == ChannelKind::kBulk ? kMaxMessageBytes : kMaxControlMessageBytes;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(max_bytes);
  arguments.SetMaxSendMessageSize(max_bytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // Not a pause, for all its name: what one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, Milliseconds(limits.connect));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // ours are counted
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(limits.ping_interval));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(limits.ping_timeout));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Bulk and control share no connection, and neither do two clients in one process: a large
  // transfer must not stand in a small call's way.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  channel->GetState(true);  // connect now, so that the first call need not wait for it
  return channel;
}

}  // namespace pagoda::rpc
