#include "services/router/inference_service.h"

#include <grpcpp/server_context.h>

#include <algorithm>
#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/deadline.h"
#include "common/rpc/grpc_status.h"
#include "pagoda/v1/inference.grpc.pb.h"
#include "services/router/field_error.h"
#include "services/router/generation.h"

namespace pagoda::router {
namespace {

// What may wait for a client that reads slowly: as much as an HTTP stream may.
constexpr size_t kMaxWaitingBytes = 8 << 20;

// One Generate call:
//   1. Begin (on the text threads) plans the request and starts the generation
//   2. tokens become messages; what arrives while one is being written joins the next
//   3. after the generation's end and the last write, Finish
//   A cancelled call cancels the generation.
class GenerateCall final : public grpc::ServerWriteReactor<v1::GenerateResponse>,
                           public GenerationSink {
 public:
  GenerateCall(RouterCore* core, grpc::CallbackServerContext* context,
               const v1::GenerateRequest* request)
      : core_(core), context_(context), request_(request) {
    core_->grpc_calls->Begin();
  }

  void Hold(std::shared_ptr<GenerateCall> self) { self_ = std::move(self); }

  void Begin() {
    auto plan = PlanRequest(*request_, core_->model, core_->plan_limits());
    if (!plan.ok()) return Fail(plan.status());
    if (request_->n() > 1) return Fail(UnsupportedField("n", "only 1 is supported in gRPC yet"));
    plan->arrived = core_->clock->Now();
    plan->deadline = Deadline();
    return_token_ids_ = plan->return_token_ids;
    {
      MutexLock lock(mutex_);
      next_.set_request_id(plan->request_id);
      if (return_token_ids_) {
        next_.mutable_prompt_token_ids()->Assign(plan->prompt_ids.begin(), plan->prompt_ids.end());
      }
    }
    auto generation = Generation::Start(core_, *std::move(plan), self_);
    bool cancel;
    {
      MutexLock lock(mutex_);
      generation_ = generation;
      cancel = cancelled_;
    }
    if (cancel) generation->Cancel();
  }

  void Fail(const Status& status) {
    core_->metrics->CountRequest("grpc", status);
    Finish(rpc::ToGrpc(status));
  }

  void OnTokens(std::span<const uint32_t> ids, const std::string& text,
                const std::string& worker) override {
    bool too_slow = false;
    {
      MutexLock lock(mutex_);
      if (!started_) context_->AddInitialMetadata("x-pagoda-worker", worker);
      started_ = true;
      next_.mutable_text()->append(text);
      if (return_token_ids_) next_.mutable_token_ids()->Add(ids.begin(), ids.end());
      waiting_ = true;
      too_slow = next_.text().size() + 4 * next_.token_ids_size() > kMaxWaitingBytes;
      if (!too_slow) WriteNext();
    }
    if (too_slow) OnCancel();
  }

  void OnEnd(const Status& status, v1::FinishReason finish, const v1::Usage& usage) override {
    core_->metrics->CountRequest("grpc", status);
    MutexLock lock(mutex_);
    generation_ = nullptr;
    ended_ = true;
    status_ = status;
    if (status.ok()) {
      next_.set_finish_reason(finish);
      *next_.mutable_usage() = usage;
      waiting_ = true;
    }
    WriteNext();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) waiting_ = false;  // OnCancel follows, and ends the generation
    WriteNext();
  }

  void OnCancel() override {
    std::shared_ptr<Generation> generation;
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      generation = generation_;
    }
    if (generation != nullptr) generation->Cancel();
  }

  void OnDone() override {
    core_->grpc_calls->End();
    std::shared_ptr<GenerateCall> last = std::move(self_);
  }

 private:
  TimePoint Deadline() const {
    TimePoint now = core_->clock->Now();
    return std::min(now + kMaxGenerationTime, rpc::FromGrpcDeadline(context_->deadline(), now));
  }

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (waiting_) {
      std::swap(writing_message_, next_);
      next_.Clear();
      waiting_ = false;
      writing_ = true;
      return StartWrite(&writing_message_);
    }
    if (!ended_) return;
    finished_ = true;
    Finish(rpc::ToGrpc(status_));
  }

  RouterCore* const core_;
  grpc::CallbackServerContext* const context_;
  const v1::GenerateRequest* const request_;  // lives until OnDone
  std::shared_ptr<GenerateCall> self_;
  bool return_token_ids_ = false;

  Mutex mutex_;
  std::shared_ptr<Generation> generation_ ABSL_GUARDED_BY(mutex_);
  v1::GenerateResponse next_ ABSL_GUARDED_BY(mutex_);
  v1::GenerateResponse writing_message_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;  // next_ holds something to write
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  Status status_ ABSL_GUARDED_BY(mutex_);
};

class InferenceService final : public v1::Inference::CallbackService {
 public:
  explicit InferenceService(RouterCore* core) : core_(core) {}

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* request) override {
    auto call = std::make_shared<GenerateCall>(core_, context, request);
    call->Hold(call);
    Status accepted = core_->RunOnTextThread([call] { call->Begin(); });
    if (!accepted.ok()) call->Fail(accepted);
    return call.get();
  }

  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest*,
                                       v1::ListModelsResponse* response) override {
    uint32_t max_model_len = core_->workers->max_model_len();
    for (const std::string& name : core_->model->names()) {
      auto* model = response->add_models();
      model->set_name(name);
      model->set_max_model_len(max_model_len);
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  RouterCore* const core_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeInferenceService(RouterCore* core) {
  return std::make_unique<InferenceService>(core);
}

}  // namespace pagoda::router
