#include "services/router/generation.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/logging.h"
#include "services/router/field_error.h"

namespace pagoda::router {
namespace {

std::set<uint32_t> StopIds(const RequestPlan& plan) {
  std::set<uint32_t> ids(plan.stop_token_ids.begin(), plan.stop_token_ids.end());
  const auto& own = plan.model->text().stop_ids();
  if (!plan.ignore_eos) ids.insert(own.begin(), own.end());
  return ids;
}

// What a client may read. The transport's own messages name addresses.
Status Public(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return absl::UnavailableError("the worker went away or takes no requests");
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      return absl::InternalError("the worker failed");
    case absl::StatusCode::kDeadlineExceeded:
      return absl::DeadlineExceededError("the request's deadline passed");
    case absl::StatusCode::kCancelled:
      return absl::CancelledError("cancelled");
    default:
      return status;
  }
}

Status PlacementError(const Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return InvalidField("worker", std::string(status.message()));
}

// Whether another worker might do better.
bool Retryable(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kAborted:
      return true;
    default:
      return false;
  }
}

}  // namespace

Generation::Generation(RouterCore* core, RequestPlan plan, std::shared_ptr<GenerationSink> sink)
    : core_(core),
      plan_(std::move(plan)),
      keys_(plan_, core->workers->Live()),
      stop_ids_(StopIds(plan_)),
      sink_(std::move(sink)),
      detokenizer_(&plan_.model->text().tokenizer()) {}

std::shared_ptr<Generation> Generation::Start(RouterCore* core, RequestPlan plan,
                                              std::shared_ptr<GenerationSink> sink) {
  std::shared_ptr<Generation> generation(new Generation(core, std::move(plan), std::move(sink)));
  Status added = core->active->Add(generation);
  if (added.ok()) {
    generation->Attempt();
  } else {
    generation->End(added);
  }
  return generation;
}

void Generation::Cancel() {
  std::shared_ptr<WorkerCall> call;
  {
    MutexLock lock(mutex_);
    cancelled_ = true;
    call = call_;
  }
  if (call != nullptr) call->Cancel();
}

bool Generation::cancelled() const {
  MutexLock lock(mutex_);
  return cancelled_;
}

// Opens a stream on some worker; what follows happens in OnMessage and OnDone. After that this
// thread touches nothing that an attempt owns: OnDone may already be running.
void Generation::Attempt() {
  while (attempts_ < kMaxAttempts) {
    if (cancelled()) return End(absl::CancelledError("cancelled"));
    auto placed =
        core_->placement->Place({.prompt_tokens = static_cast<uint32_t>(plan_.prompt_ids.size()),
                                 .prefixes = keys_.prefixes(),
                                 .pinned = plan_.pinned_worker,
                                 .excluded = failed_});
    if (!placed.ok()) return End(attempts_ == 0 ? PlacementError(placed.status()) : last_error_);
    core_->metrics->CountPlacement(placed->decision);
    if (attempts_++ > 0) core_->metrics->CountRetry();
    instance_id_ = placed->instance_id;
    ticket_ = placed->ticket;
    worker_ = placed->decision.worker;
    overrun_ = false;
    finish_ = v1::FINISH_REASON_UNSPECIFIED;
    usage_.Clear();
    if (auto worker = core_->workers->Find(instance_id_)) return Call(*worker);
    core_->placement->OnEnd(ticket_);
    failed_.insert(instance_id_);
    last_error_ = Public(absl::UnavailableError(""));
  }
  End(last_error_);
}

void Generation::Call(const RegisteredWorker& worker) {
  const int attempt = attempts_;
  auto self = shared_from_this();
  auto call = worker.client->Generate(
      MakeRequest(worker), plan_.deadline,
      {.on_message = [self](const auto& message) { self->OnMessage(message); },
       .on_done = [self](Status status) { self->OnDone(std::move(status)); }});
  bool cancel;
  {
    MutexLock lock(mutex_);
    if (ended_attempts_ < attempt) call_ = call;
    cancel = cancelled_ || abandoned_attempt_ == attempt;
  }
  if (cancel) call->Cancel();
}

v1::WorkerGenerateRequest Generation::MakeRequest(const RegisteredWorker& worker) const {
  v1::WorkerGenerateRequest request;
  request.set_request_id(plan_.request_id);
  request.mutable_prompt_ids()->Assign(plan_.prompt_ids.begin(), plan_.prompt_ids.end());
  *request.mutable_sampling() = plan_.sampling;
  v1::StopConditions* stop = request.mutable_stop();
  stop->set_max_tokens(plan_.max_tokens);
  stop->mutable_stop_token_ids()->Assign(plan_.stop_token_ids.begin(), plan_.stop_token_ids.end());
  stop->set_ignore_eos(plan_.ignore_eos);
  request.set_space_required(std::string(worker.space.view()));
  request.set_block_keys(keys_.BlockKeysFor(worker));
  request.set_tenant(plan_.tenant);
  *request.mutable_cache_scope() = plan_.scope_field;
  request.set_priority(plan_.priority);
  auto age = core_->clock->Now() - plan_.arrived;
  request.set_age_ms(static_cast<uint32_t>(
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(age).count())));
  request.set_router_id(core_->workers->router_id());
  request.set_router_sequence(ticket_);
  return request;
}

// Closes the running attempt's stream; OnDone follows.
void Generation::AbandonAttempt() {
  std::shared_ptr<WorkerCall> call;
  {
    MutexLock lock(mutex_);
    abandoned_attempt_ = attempts_;
    call = call_;
  }
  if (call != nullptr) call->Cancel();
}

void Generation::OnMessage(const v1::WorkerGenerateResponse& message) {
  if (overrun_) return;
  // A worker that does not stop would fill this process with tokens nobody asked for.
  size_t total = output_ids_.size() + static_cast<size_t>(message.token_ids_size());
  overrun_ = total > plan_.max_tokens || finish_ != v1::FINISH_REASON_UNSPECIFIED;
  if (overrun_) return AbandonAttempt();
  if (message.token_ids_size() > 0) {
    core_->placement->OnFirstToken(ticket_);
    Deliver(message.token_ids());
  }
  if (message.finish_reason() != v1::FINISH_REASON_UNSPECIFIED) {
    finish_ = message.finish_reason();
    usage_ = message.usage();
  }
}

void Generation::Deliver(const google::protobuf::RepeatedField<uint32_t>& ids) {
  output_ids_.insert(output_ids_.end(), ids.begin(), ids.end());
  std::string text;
  for (uint32_t id : ids) {
    if (!stop_ids_.contains(id)) text += detokenizer_.Feed(id);
  }
  sink_->OnTokens({ids.data(), static_cast<size_t>(ids.size())}, text, worker_);
}

// How the attempt ended, from the stream's status and its last message.
Status Generation::EndStatus(const Status& status) const {
  if (cancelled()) return absl::CancelledError("cancelled");
  if (overrun_) return absl::InternalError("the worker sent more than was asked for");
  if (!status.ok()) return status;
  switch (finish_) {
    case v1::STOP:
    case v1::LENGTH:
      return absl::OkStatus();
    case v1::CANCELLED:
      return absl::DeadlineExceededError("the worker cancelled the request");
    default:
      return absl::InternalError("the worker's stream ended without a finish reason");
  }
}

void Generation::OnDone(Status stream_status) {
  core_->placement->OnEnd(ticket_);
  {
    MutexLock lock(mutex_);
    ended_attempts_ = attempts_;
    call_ = nullptr;
  }
  Status status = EndStatus(stream_status);
  if (status.ok()) {
    if (std::string rest = detokenizer_.Finish(); !rest.empty()) sink_->OnTokens({}, rest, worker_);
    return End(status);
  }
  if (absl::IsCancelled(status)) return End(status);
  Log(LogLevel::kWarning, "attempt failed",
      {{"request", plan_.request_id},
       {"worker", worker_},
       {"attempt", attempts_},
       {"delivered_tokens", output_ids_.size()},
       {"status", status}});
  last_error_ = Public(status);
  failed_.insert(instance_id_);
  if (!Retryable(status) || !output_ids_.empty()) return End(last_error_);
  Attempt();
}

void Generation::End(const Status& status) {
  usage_.set_retries(attempts_ > 1 ? static_cast<uint32_t>(attempts_ - 1) : 0);
  usage_.clear_workers();
  if (!output_ids_.empty()) usage_.add_workers(worker_);
  std::shared_ptr<GenerationSink> sink = std::move(sink_);
  core_->active->Remove(this);
  sink->OnEnd(status, finish_, usage_);
}

}  // namespace pagoda::router
