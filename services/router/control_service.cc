#include "services/router/control_service.h"

#include <grpcpp/server_context.h>

#include <atomic>
#include <utility>

#include "common/rpc/grpc_status.h"
#include "pagoda/v1/control.grpc.pb.h"

namespace pagoda::router {
namespace {

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

// One report stream: reads a report, answers it, and reads on until the worker ends it or breaks
// off.
class ReportStream final : public grpc::ServerBidiReactor<v1::ReportRequest, v1::ReportResponse> {
 public:
  ReportStream(WorkerRegistry* registry, uint64_t number) : registry_(registry), number_(number) {
    StartRead(&report_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    auto response = registry_->OnReport(number_, report_);
    if (!response.ok()) return Finish(rpc::ToGrpc(response.status()));
    response_ = *std::move(response);
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&report_);
  }

  void OnDone() override {
    registry_->OnReportsEnded(number_);
    delete this;
  }

 private:
  WorkerRegistry* const registry_;
  const uint64_t number_;
  v1::ReportRequest report_;
  v1::ReportResponse response_;
};

class ControlService final : public v1::Control::CallbackService {
 public:
  explicit ControlService(WorkerRegistry* registry) : registry_(registry) {}

  grpc::ServerUnaryReactor* Register(grpc::CallbackServerContext* context,
                                     const v1::RegisterRequest* request,
                                     v1::RegisterResponse* response) override {
    auto result = registry_->Register(*request);
    if (result.ok()) *response = *result;
    return Answer(context, result.status());
  }

  grpc::ServerBidiReactor<v1::ReportRequest, v1::ReportResponse>* Report(
      grpc::CallbackServerContext*) override {
    return new ReportStream(registry_, ++streams_);  // deletes itself in OnDone
  }

  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest*,
                                        v1::ListWorkersResponse* response) override {
    *response = registry_->List();
    return Answer(context, absl::OkStatus());
  }

  grpc::ServerUnaryReactor* DrainWorker(grpc::CallbackServerContext* context,
                                        const v1::DrainWorkerRequest* request,
                                        v1::DrainWorkerResponse*) override {
    return Answer(context, registry_->Drain(request->name()));
  }

 private:
  WorkerRegistry* const registry_;
  std::atomic<uint64_t> streams_ = 0;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeControlService(WorkerRegistry* registry) {
  return std::make_unique<ControlService>(registry);
}

}  // namespace pagoda::router
