#include "services/worker/generate_service.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/rpc/deadline.h"
#include "common/rpc/grpc_status.h"

namespace pagoda::worker {
namespace {

using Response = v1::WorkerGenerateResponse;

// Shared by the gRPC reactor (until OnDone) and the engine (until OnFinish).
class Stream final : public TokenSink {
 public:
  explicit Stream(grpc::ServerWriteReactor<Response>* reactor) : reactor_(reactor) {}

  bool HasRoom() override {
    MutexLock lock(mutex_);
    return tokens_.size() < kMaxBufferedTokens;
  }

  void OnPromptDone(const GenerationUsage& usage) override {
    MutexLock lock(mutex_);
    prompt_usage_ = usage;
  }

  void OnToken(TokenId token) override {
    MutexLock lock(mutex_);
    tokens_.push_back(token);
    Advance();
  }

  void OnFinish(const GenerationResult& result) override {
    MutexLock lock(mutex_);
    result_ = result;
    Advance();
  }

  // Refuses the call, or lets the stream begin. A message must not be written before Generate has
  // returned the reactor, which gRPC takes care of.
  void Refuse(const Status& status) {
    MutexLock lock(mutex_);
    FinishCall(status);
  }

  // True when the engine may have paused for lack of room.
  bool OnWritten(bool ok) {
    MutexLock lock(mutex_);
    writing_ = false;
    broken_ |= !ok;
    bool was_full = tokens_.size() >= kMaxBufferedTokens;
    Advance();
    return was_full;
  }

 private:
  // Starts the next write, or ends the call, when neither is under way.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    bool last = result_.has_value();
    if (broken_ || (last && !result_->status.ok() && tokens_.empty())) {
      if (last) FinishCall(result_->status);
      tokens_.clear();
      return;
    }
    if (tokens_.empty() && !last) return;
    message_.Clear();
    message_.mutable_token_ids()->Assign(tokens_.begin(), tokens_.end());
    tokens_.clear();
    if (prompt_usage_) FillUsage(*prompt_usage_, *message_.mutable_usage());
    prompt_usage_.reset();
    writing_ = true;
    if (last && result_->status.ok()) {
      FillFinish(*result_, message_);
      finished_ = true;
      reactor_->StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      reactor_->StartWrite(&message_);
    }
  }

  void FinishCall(const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_ = true;
    reactor_->Finish(rpc::ToGrpc(status));
  }

  Mutex mutex_;
  // Valid until the call is finished, which happens under the mutex.
  grpc::ServerWriteReactor<Response>* const reactor_;
  std::vector<TokenId> tokens_ ABSL_GUARDED_BY(mutex_);
  std::optional<GenerationUsage> prompt_usage_ ABSL_GUARDED_BY(mutex_);  // not sent yet
  std::optional<GenerationResult> result_ ABSL_GUARDED_BY(mutex_);
  Response message_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;    // the client is gone
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;  // Finish was called
};

class GenerateCall final : public grpc::ServerWriteReactor<Response> {
 public:
  explicit GenerateCall(Engine* engine)
      : engine_(engine), stream_(std::make_shared<Stream>(this)) {}

  void Begin(StatusOr<GenerationRequest> request) {
    if (!request.ok()) return stream_->Refuse(request.status());
    // At once, so that the router knows that this worker has taken the request up.
    StartSendInitialMetadata();
    StatusOr<SequenceId> id = engine_->Submit(*std::move(request), stream_);
    if (!id.ok()) return stream_->Refuse(id.status());
    bool cancelled;
    {
      MutexLock lock(mutex_);
      id_ = *id;
      cancelled = cancelled_;
    }
    if (cancelled) engine_->Cancel(*id);
  }

  void OnWriteDone(bool ok) override {
    // A copy: after OnWritten the call may be done and this object gone.
    std::shared_ptr<Stream> stream = stream_;
    Engine* engine = engine_;
    if (stream->OnWritten(ok)) engine->Wake();
  }

  void OnCancel() override {
    std::optional<SequenceId> id;
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
      id = id_;
    }
    if (id.has_value()) engine_->Cancel(*id);
  }

  void OnDone() override { delete this; }

 private:
  Engine* const engine_;
  const std::shared_ptr<Stream> stream_;
  Mutex mutex_;
  std::optional<SequenceId> id_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

GenerateService::GenerateService(Engine* engine, WorkerModel model, v1::GetModelInfoResponse info)
    : engine_(engine), model_(std::move(model)), info_(std::move(info)) {}

grpc::ServerWriteReactor<Response>* GenerateService::Generate(
    grpc::CallbackServerContext* context, const v1::WorkerGenerateRequest* request) {
  auto* call = new GenerateCall(engine_);
  StatusOr<GenerationRequest> translated = FromProto(*request, model_);
  if (translated.ok()) {
    translated->deadline = rpc::FromGrpcDeadline(context->deadline(), SystemClock::Get()->Now());
  }
  call->Begin(std::move(translated));
  return call;
}

grpc::ServerUnaryReactor* GenerateService::GetModelInfo(grpc::CallbackServerContext* context,
                                                        const v1::GetModelInfoRequest*,
                                                        v1::GetModelInfoResponse* response) {
  *response = info_;
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace pagoda::worker
