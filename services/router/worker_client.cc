#include "services/router/worker_client.h"

#include <grpcpp/client_context.h>

#include <atomic>
#include <utility>

#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/grpc_status.h"
#include "pagoda/v1/worker.grpc.pb.h"
#include "services/router/router_core.h"

namespace pagoda::router {
namespace {

// One stream: StartCall, then read after read until one fails, then OnDone.
class GenerateCall final : public grpc::ClientReadReactor<v1::WorkerGenerateResponse>,
                           public WorkerCall {
 public:
  GenerateCall(std::shared_ptr<WorkerClient> client, v1::WorkerGenerateRequest request,
               WorkerClient::Callbacks callbacks)
      : client_(std::move(client)),
        request_(std::move(request)),
        callbacks_(std::move(callbacks)) {}

  // `self` is held until OnDone.
  void Start(v1::Worker::Stub* stub, TimePoint deadline, std::shared_ptr<GenerateCall> self) {
    self_ = std::move(self);
    context_.set_deadline(
        rpc::ToGrpcDeadline(deadline, kMaxGenerationTime, SystemClock::Get()->Now()));
    stub->async()->Generate(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void Cancel() override { context_.TryCancel(); }

  void OnReadInitialMetadataDone(bool ok) override { reached_ = ok; }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    callbacks_.on_message(response_);
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) override {
    std::shared_ptr<GenerateCall> self = std::move(self_);
    callbacks_.on_done(rpc::FromGrpc(status), reached_);
    callbacks_ = {};  // they hold the generation, which holds this call
  }

 private:
  const std::shared_ptr<WorkerClient>
      client_;  // first: outlives the context, which holds a channel
  const v1::WorkerGenerateRequest request_;
  WorkerClient::Callbacks callbacks_;
  grpc::ClientContext context_;
  v1::WorkerGenerateResponse response_;
  std::atomic<bool> reached_ = false;
  std::shared_ptr<GenerateCall> self_;
};

class GrpcWorkerClient final : public WorkerClient,
                               public std::enable_shared_from_this<GrpcWorkerClient> {
 public:
  explicit GrpcWorkerClient(const std::string& address)
      : stub_(v1::Worker::NewStub(rpc::MakeChannel(address, rpc::ChannelKind::kControl))) {}

  std::shared_ptr<WorkerCall> Generate(v1::WorkerGenerateRequest request, TimePoint deadline,
                                       Callbacks callbacks) override {
    auto call = std::make_shared<GenerateCall>(shared_from_this(), std::move(request),
                                               std::move(callbacks));
    call->Start(stub_.get(), deadline, call);
    return call;
  }

 private:
  const std::unique_ptr<v1::Worker::Stub> stub_;
};

}  // namespace

std::shared_ptr<WorkerClient> WorkerClient::Create(const std::string& address) {
  return std::make_shared<GrpcWorkerClient>(address);
}

}  // namespace pagoda::router
