// One ReportCorrupt of a RemoteBlockStore: a small call that nobody waits for.
#include <memory>
#include <optional>
#include <string>

#include "common/rpc/remote_calls.h"

namespace pagoda::rpc {
namespace {

struct ReportCall {
  ReportCall(RemoteCalls& calls, const CallContext& context) { call.emplace(calls, context); }

  std::optional<RemoteCall> call;  // empty once it has ended
  v1::ReportCorruptRequest request;
  v1::ReportCorruptResponse response;
};

}  // namespace

void StartRemoteReport(RemoteCalls& calls, const CorruptReport& report) {
  if (!calls.handshake.Limits().ok() || !calls.TryStart(0, 0, 1)) return;
  CallContext context{.deadline = calls.clock.Now() + calls.options.report_timeout};
  auto running = std::make_shared<ReportCall>(calls, context);
  running->request.set_key(std::string(report.key.view()));
  running->request.set_producer_instance_id(report.producer_instance);
  running->request.set_reason(report.reason);
  running->call->Arm();
  calls.control->async()->ReportCorrupt(&running->call->grpc_context(), &running->request,
                                        &running->response,
                                        [&calls, running](const grpc::Status& status) {
                                          (void)running->call->Ended(status);
                                          running->call.reset();
                                          calls.Ended(0, 0, 1);
                                        });
}

}  // namespace pagoda::rpc
