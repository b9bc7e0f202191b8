// One Describe of a RemoteBlockStore: a small call that nobody waits for.
#include <memory>
#include <optional>

#include "common/base/version.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/remote_calls.h"

namespace pagoda::rpc {
namespace {

struct DescribeCall {
  DescribeCall(RemoteCalls& calls, const CallContext& context) { call.emplace(calls, context); }

  std::optional<RemoteCall> call;  // empty once it has ended
  v1::DescribeRequest request;
  v1::DescribeResponse response;
};

}  // namespace

void AskWhoTheStoreIs(RemoteCalls& calls) {
  const TimePoint now = calls.clock.Now();
  if (!calls.handshake.TryAsk(now)) return;
  // Only refused when the store ends: nobody is asked any more.
  if (!calls.TryStart(0, 0)) return;
  // As long as an attempt to connect may take: the question often goes out before the connection
  // is there.
  CallContext context{.deadline = now + calls.options.connection.connect};
  auto running = std::make_shared<DescribeCall>(calls, context);
  running->request.mutable_protocol()->set_min(kProtocolMin);
  running->request.mutable_protocol()->set_max(kProtocolMax);
  running->call->Arm();
  calls.control->async()->Describe(&running->call->grpc_context(), &running->request,
                                   &running->response,
                                   [&calls, running](const grpc::Status& status) {
                                     (void)running->call->Ended(status);
                                     running->call.reset();
                                     calls.handshake.Answered(FromGrpc(status), running->response);
                                     calls.Ended(0, 0);
                                   });
}

}  // namespace pagoda::rpc
