#include "common/rpc/server.h"

#include <grpcpp/client_context.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "gtest/gtest.h"
#include "pagoda/v1/kvstore.grpc.pb.h"

namespace pagoda::rpc {
namespace {

using v1::DescribeRequest;
using v1::DescribeResponse;

class EchoStore final : public v1::KvStore::CallbackService {
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const DescribeRequest* request,
                                     DescribeResponse* response) override {
    response->set_shard_id("shard");
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(request->protocol().min() > 1
                        ? ToGrpc(absl::FailedPreconditionError("protocol"))
                        : grpc::Status::OK);
    return reactor;
  }
};

grpc::Status Describe(std::shared_ptr<grpc::Channel> channel, DescribeRequest request,
                      DescribeResponse* response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  return v1::KvStore::NewStub(channel)->Describe(&context, request, response);
}

TEST(RpcServerTest, ServesOnAFreePortAndKeepsStatusCodes) {
  EchoStore service;
  auto server = Server::Start({.address = "127.0.0.1:0", .services = {&service}});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_GT((*server)->port(), 0);
  auto channel = MakeChannel((*server)->address(), ChannelKind::kControl);
  DescribeResponse response;
  EXPECT_TRUE(Describe(channel, {}, &response).ok());
  EXPECT_EQ(response.shard_id(), "shard");
  DescribeRequest request;
  request.mutable_protocol()->set_min(2);
  Status status = FromGrpc(Describe(channel, request, &response));
  EXPECT_EQ(status, absl::FailedPreconditionError("protocol"));
}

TEST(RpcServerTest, APortInUseIsRefusedByName) {
  auto first = Server::Start({.address = "127.0.0.1:0"});
  ASSERT_TRUE(first.ok());
  auto second = Server::Start({.address = (*first)->address()});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find((*first)->address()), absl::string_view::npos);
}

TEST(RpcServerTest, AMessageOverTheLimitIsRefused) {
  EchoStore service;
  auto server =
      Server::Start({.address = "127.0.0.1:0", .services = {&service}, .max_receive_bytes = 1024});
  ASSERT_TRUE(server.ok());
  auto channel = MakeChannel((*server)->address(), ChannelKind::kControl);
  grpc::ClientContext context;
  v1::FindMissingRequest request;
  request.set_keys(std::string(2048, 'k'));
  v1::FindMissingResponse response;
  EXPECT_EQ(v1::KvStore::NewStub(channel)->FindMissing(&context, request, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST(RpcServerTest, CallsToADeadAddressFailAtOnce) {
  std::string address;
  {
    auto server = Server::Start({.address = "127.0.0.1:0"});
    ASSERT_TRUE(server.ok());
    address = (*server)->address();
  }
  auto channel = MakeChannel(address, ChannelKind::kControl);
  DescribeResponse response;
  EXPECT_EQ(Describe(channel, {}, &response).error_code(), grpc::StatusCode::UNAVAILABLE);
}

// The kernel takes the connection; nobody answers the HTTP/2 greeting, as on a busy peer.
class SilentPeer {
 public:
  SilentPeer() {
    sockaddr_in local{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(local);
    auto* name = reinterpret_cast<sockaddr*>(&local);
    EXPECT_EQ(bind(listener_, name, size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, name, &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(local.sin_port));
  }
  ~SilentPeer() { close(listener_); }
  const std::string& address() const { return address_; }

 private:
  const int listener_ = socket(AF_INET, SOCK_STREAM, 0);
  std::string address_;
};

grpc::StatusCode DescribeWithin(std::chrono::milliseconds time,
                                const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + time);
  v1::DescribeResponse response;
  return v1::KvStore::NewStub(channel)->Describe(&context, {}, &response).error_code();
}

TEST(RpcServerTest, APeerThatGreetsLateIsWaitedForLongerThanTheFirstPause) {
  SilentPeer peer;
  auto channel = MakeChannel(peer.address(), ChannelKind::kControl);
  // Not UNAVAILABLE: the attempt was still going on.
  EXPECT_EQ(DescribeWithin(std::chrono::milliseconds(500), channel),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST(RpcServerTest, APeerMayGreetAsLateAsTheLimitOfTheConnectionAllows) {
  SilentPeer peer;
  auto channel =
      MakeChannel(peer.address(), ChannelKind::kBulk, {.connect = std::chrono::minutes(4)});
  auto longer_than_unchanged = ConnectionLimits{}.connect + std::chrono::milliseconds(500);
  EXPECT_EQ(
      DescribeWithin(std::chrono::ceil<std::chrono::milliseconds>(longer_than_unchanged), channel),
      grpc::StatusCode::DEADLINE_EXCEEDED);
}

}  // namespace
}  // namespace pagoda::rpc
