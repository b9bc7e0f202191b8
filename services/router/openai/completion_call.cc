#include "services/router/openai/completion_call.h"

#include <chrono>
#include <utility>

#include "common/kv/identity.h"
#include "services/router/http_status.h"

namespace pagoda::router::openai {
// One generation's ear; several of them share the call.
class CompletionCall::Sink final : public GenerationSink {
 public:
  Sink(std::shared_ptr<CompletionCall> call, size_t index)
      : call_(std::move(call)), index_(index) {}

  void OnTokens(std::span<const uint32_t> ids, const std::string& text,
                const std::string& worker) override {
    call_->OnTokens(index_, ids, text, worker);
  }
  void OnEnd(const Status& status, v1::FinishReason finish, const v1::Usage& usage) override {
    call_->OnEnd(index_, status, finish, usage);
  }

 private:
  const std::shared_ptr<CompletionCall> call_;
  const size_t index_;
};

CompletionCall::CompletionCall(RouterCore* core, Api api, CompletionRequest request,
                               std::shared_ptr<http::Responder> responder)
    : core_(core), api_(api), request_(std::move(request)), responder_(std::move(responder)) {}

void CompletionCall::Start(RouterCore* core, Api api, CompletionRequest request,
                           std::shared_ptr<http::Responder> responder) {
  std::shared_ptr<CompletionCall> call(
      new CompletionCall(core, api, std::move(request), std::move(responder)));
  if (Status status = call->PlanAll(); !status.ok()) {
    MutexLock lock(call->mutex_);
    return call->FailLocked(status);
  }
  call->Run();
}

Status CompletionCall::PlanAll() {
  for (const v1::GenerateRequest& prompt : request_.prompts) {
    PAGODA_ASSIGN_OR_RETURN(RequestPlan plan,
                            PlanRequest(prompt, core_->model, core_->plan_limits()));
    plan.arrived = core_->clock->Now();
    plan.deadline = plan.arrived + kMaxGenerationTime;
    for (plan.choice = 0; plan.choice < request_.n; ++plan.choice) plans_.push_back(plan);
  }
  return absl::OkStatus();
}

void CompletionCall::Run() {
  auto live = core_->workers->Live();
  auto now = std::chrono::duration_cast<std::chrono::seconds>(core_->clock->WallTime());
  writer_ = std::make_unique<ResponseWriter>(
      ResponseWriter::Options{.api = api_,
                              .request_id = plans_.front().request_id,
                              .model = plans_.front().model_name,
                              .created_seconds = now.count(),
                              .fingerprint = live.empty() ? "" : Fingerprint(live[0]->space),
                              .include_usage = request_.include_usage,
                              .return_token_ids = request_.return_token_ids});
  {
    MutexLock lock(mutex_);
    choices_.resize(plans_.size());
    begun_.resize(plans_.size());
    running_ = plans_.size();
    if (request_.return_token_ids) {
      for (size_t i = 0; i < plans_.size(); ++i) choices_[i].prompt_ids = plans_[i].prompt_ids;
    }
  }
  std::weak_ptr<CompletionCall> weak = shared_from_this();
  responder_->OnClose([weak](http::CloseReason) {
    if (auto call = weak.lock()) call->Cancel();
  });
  for (size_t i = 0; i < plans_.size(); ++i) {
    auto generation = Generation::Start(core_, std::move(plans_[i]),
                                        std::make_shared<Sink>(shared_from_this(), i));
    bool over;
    {
      MutexLock lock(mutex_);
      over = over_;
      if (!over) generations_.push_back(generation);
    }
    if (over) {
      generation->Cancel();
      return;
    }
  }
}

void CompletionCall::OnTokens(size_t index, std::span<const uint32_t> ids, const std::string& text,
                              const std::string& worker) {
  MutexLock lock(mutex_);
  if (over_) return;
  if (worker_.empty()) worker_ = worker;
  if (!request_.stream) {
    choices_[index].text += text;
    if (request_.return_token_ids) {
      choices_[index].token_ids.insert(choices_[index].token_ids.end(), ids.begin(), ids.end());
    }
    return;
  }
  if (!streaming_) {
    streaming_ = true;
    responder_->Start(200, {{"Content-Type", "text/event-stream; charset=utf-8"},
                            {"Cache-Control", "no-cache"},
                            {"x-pagoda-worker", worker_}});
  }
  std::string events;
  if (!begun_[index]) events = writer_->FirstEvent(index, choices_[index].prompt_ids);
  begun_[index] = true;
  if (!text.empty() || (request_.return_token_ids && !ids.empty())) {
    events += writer_->TextEvent(index, text, ids);
  }
  responder_->Write(events);
}

void CompletionCall::OnEnd(size_t index, const Status& status, v1::FinishReason finish,
                           const v1::Usage& usage) {
  std::vector<std::shared_ptr<Generation>> cancelled;
  {
    MutexLock lock(mutex_);
    --running_;
    if (over_) return;
    if (!status.ok()) {
      FailLocked(status);
      cancelled.swap(generations_);
    } else {
      choices_[index].finish = finish;
      AddUsage(usage, &usage_);
      // The choices of one prompt have it in common.
      if (index % request_.n != 0) {
        usage_.set_prompt_tokens(usage_.prompt_tokens() - usage.prompt_tokens());
      }
      if (request_.stream) responder_->Write(writer_->FinishEvent(index, finish));
      if (running_ == 0) FinishLocked();
    }
  }
  for (auto& generation : cancelled) generation->Cancel();
}

void CompletionCall::Cancel() {
  std::vector<std::shared_ptr<Generation>> cancelled;
  {
    MutexLock lock(mutex_);
    if (over_) return;
    over_ = true;
    core_->metrics->CountRequest(ApiName(api_), absl::CancelledError("the client went away"));
    cancelled.swap(generations_);
  }
  for (auto& generation : cancelled) generation->Cancel();
}

void CompletionCall::FailLocked(const Status& status) {
  over_ = true;
  core_->metrics->CountRequest(ApiName(api_), status);
  if (streaming_) {
    responder_->Write(ResponseWriter::ErrorEvent(http::ErrorJson(ToHttpError(status))));
    responder_->Finish();
  } else {
    responder_->Send(ToHttpResponse(status));
  }
}

void CompletionCall::FinishLocked() {
  over_ = true;
  generations_.clear();
  core_->metrics->CountRequest(ApiName(api_), absl::OkStatus());
  if (request_.stream) {
    responder_->Write(writer_->UsageEvent(usage_) + ResponseWriter::DoneEvent());
    responder_->Finish();
    return;
  }
  http::HttpResponse response = http::JsonResponse(200, writer_->Whole(choices_, usage_));
  response.headers.emplace_back("x-pagoda-worker", worker_);
  responder_->Send(std::move(response));
}

}  // namespace pagoda::router::openai
