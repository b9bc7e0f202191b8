#include "services/router/generation.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/logging.h"
#include "services/router/attempt_error.h"

namespace pagoda::router {
namespace {

// Of what placement predicted: its rates are guesses until a worker has reported its own.
constexpr int kPredictionSlack = 10;

std::set<uint32_t> StopIds(const RequestPlan& plan) {
  std::set<uint32_t> ids(plan.stop_token_ids.begin(), plan.stop_token_ids.end());
  const auto& own = plan.model->text().stop_ids();
  if (!plan.ignore_eos) ids.insert(own.begin(), own.end());
  return ids;
}

}  // namespace

Generation::Generation(RouterCore* core, RequestPlan plan, std::shared_ptr<GenerationSink> sink)
    : core_(core),
      plan_(std::move(plan)),
      fingerprint_(FingerprintOf(plan_)),
      stop_ids_(StopIds(plan_)),
      sink_(std::move(sink)),
      detokenizer_(&plan_.model->text().tokenizer()),
      stop_strings_(plan_.stop_strings),
      keys_(plan_, {}, core->workers->Live()) {}

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

void Generation::Cancel(const Status& why) {
  std::shared_ptr<WorkerCall> call;
  {
    MutexLock lock(mutex_);
    if (cancelled_.ok()) cancelled_ = why;
    call = running_.call;
  }
  if (call != nullptr) call->Cancel();
}

Status Generation::cancelled() const {
  MutexLock lock(mutex_);
  return cancelled_;
}

void Generation::Tick(const std::map<uint64_t, Hang>& hanging) {
  bool look = false;
  std::shared_ptr<WorkerCall> call;
  {
    MutexLock lock(mutex_);
    look = std::exchange(waiting_, false);
    if (running_.attempt != 0 && running_.abandoned.ok()) {
      if (hanging.contains(running_.instance_id)) {
        running_.abandoned = absl::UnavailableError("the worker hangs");
      } else if (core_->clock->Now() - running_.since > running_.limit) {
        running_.abandoned = absl::UnavailableError("no token within the limit");
      }
      if (!running_.abandoned.ok()) call = running_.call;
    }
  }
  if (look) return Attempt();
  if (call != nullptr) call->Cancel();
}

// What forbids another attempt, if anything does.
std::optional<Status> Generation::WhyNoAttempt() const {
  if (Status why = cancelled(); !why.ok()) return why;
  if (core_->killers->Refused(fingerprint_)) {
    core_->metrics->CountKillerRefused();
    return absl::FailedPreconditionError(
        "workers died while this request ran on them; it is refused for some minutes");
  }
  const bool spent = resuming() ? charged_resumes_ >= kMaxResumes : charged_before_ >= kMaxAttempts;
  if (spent || handovers_ > kMaxHandovers) return last_error_;
  return std::nullopt;
}

StatusOr<placement::Placed> Generation::Place() {
  // Workers may have come since, so keys are made anew for each resume.
  if (keyed_outputs_ != output_ids_.size()) {
    keys_ = PromptKeys(plan_, output_ids_, core_->workers->Live());
    keyed_outputs_ = output_ids_.size();
  }
  return core_->placement->Place(
      {.prompt_tokens = static_cast<uint32_t>(plan_.prompt_ids.size() + output_ids_.size()),
       .prefixes = keys_.prefixes(),
       .pinned = resuming() ? "" : plan_.pinned_worker,
       .excluded = failed_,
       .space = space_});
}

// Opens a stream on some worker; what follows happens in OnMessage and OnDone. After that this
// thread touches nothing that an attempt owns: OnDone may already be running.
void Generation::Attempt() {
  while (true) {
    if (auto why = WhyNoAttempt()) return End(*why);
    auto placed = Place();
    if (!placed.ok()) {
      if (resuming()) return WaitForWorker();
      return End(attempts_ == 0 ? PlacementError(placed.status()) : last_error_);
    }
    wait_until_ = TimePoint::max();
    core_->metrics->CountPlacement(placed->decision);
    if (attempts_++ > 0) core_->metrics->CountRetry();
    if (resuming()) core_->metrics->CountResume();
    ++(resuming() ? charged_resumes_ : charged_before_);
    instance_id_ = placed->instance_id;
    ticket_ = placed->ticket;
    worker_ = core_->workers->Find(instance_id_);
    if (worker_ != nullptr) return Call(placed->decision);
    core_->placement->OnEnd(ticket_);
    failed_.insert(instance_id_);
    last_error_ = PublicError(absl::UnavailableError(""));
  }
}

// REQUIRES: nothing runs. The last thing that this thread does with what an attempt owns.
void Generation::WaitForWorker() {
  TimePoint now = core_->clock->Now();
  if (wait_until_ == TimePoint::max()) wait_until_ = now + core_->limits.resume_wait;
  if (now >= std::min(wait_until_, plan_.deadline)) return End(last_error_);
  MutexLock lock(mutex_);
  waiting_ = true;
}

void Generation::Call(const placement::Decision& decision) {
  resumed_ = static_cast<uint32_t>(output_ids_.size());
  overrun_ = false;
  finish_ = v1::FINISH_REASON_UNSPECIFIED;
  usage_.Clear();
  const int attempt = attempts_;
  const Duration predicted = FromSeconds(decision.wait_seconds + decision.prefill_seconds);
  {
    MutexLock lock(mutex_);
    running_ = {.attempt = attempt,
                .instance_id = instance_id_,
                .since = core_->clock->Now(),
                .limit = core_->limits.first_token + kPredictionSlack * predicted};
  }
  core_->killers->Begin(instance_id_, fingerprint_);
  auto self = shared_from_this();
  auto client = worker_->client;  // the next attempt may have replaced worker_ before this returns
  auto call = client->Generate(
      MakeRequest(), plan_.deadline,
      {.on_message = [self](const auto& message) { self->OnMessage(message); },
       .on_done = [self](Status status,
                         bool reached) { self->OnDone(std::move(status), reached); }});
  bool cancel = false;
  {
    MutexLock lock(mutex_);
    if (running_.attempt == attempt) {
      running_.call = call;
      cancel = !cancelled_.ok() || !running_.abandoned.ok();
    }
  }
  if (cancel) call->Cancel();
}

v1::WorkerGenerateRequest Generation::MakeRequest() const {
  v1::WorkerGenerateRequest request;
  request.set_request_id(plan_.request_id);
  request.mutable_prompt_ids()->Assign(plan_.prompt_ids.begin(), plan_.prompt_ids.end());
  request.mutable_output_ids()->Assign(output_ids_.begin(), output_ids_.end());
  request.set_choice_index(plan_.choice);
  *request.mutable_sampling() = plan_.sampling;
  v1::StopConditions* stop = request.mutable_stop();
  stop->set_max_tokens(plan_.max_tokens);
  stop->set_min_tokens(plan_.min_tokens);
  stop->mutable_stop_token_ids()->Assign(plan_.stop_token_ids.begin(), plan_.stop_token_ids.end());
  stop->set_ignore_eos(plan_.ignore_eos);
  request.set_space_required(std::string(worker_->space.view()));
  request.set_block_keys(keys_.BlockKeysFor(*worker_));
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

// Closes the stream of the attempt that is running; OnDone follows.
// REQUIRES: called by that attempt.
void Generation::Abandon(Status why) {
  std::shared_ptr<WorkerCall> call;
  {
    MutexLock lock(mutex_);
    running_.abandoned = std::move(why);
    call = running_.call;
  }
  if (call != nullptr) call->Cancel();
}

void Generation::OnMessage(const v1::WorkerGenerateResponse& message) {
  {
    MutexLock lock(mutex_);
    if (!running_.abandoned.ok()) return;
    running_.since = core_->clock->Now();
    running_.limit = core_->limits.between_tokens;
  }
  // A worker that does not stop would fill this process with tokens nobody asked for.
  size_t total = output_ids_.size() + static_cast<size_t>(message.token_ids_size());
  overrun_ = total > plan_.max_tokens || finish_ != v1::FINISH_REASON_UNSPECIFIED;
  if (overrun_) return Abandon(absl::InternalError("the worker sent more than was asked for"));
  if (message.has_usage()) usage_ = message.usage();
  if (message.token_ids_size() > 0) {
    core_->placement->OnFirstToken(ticket_);
    Deliver({message.token_ids().data(), static_cast<size_t>(message.token_ids_size())});
    if (stop_strings_.found()) return;
  }
  if (message.finish_reason() != v1::FINISH_REASON_UNSPECIFIED) {
    finish_ = message.finish_reason();
  }
}

// What becomes certain through an output token that has just been added.
std::string Generation::Text(uint32_t id) {
  const std::string text = stop_ids_.contains(id) ? "" : detokenizer_.Feed(id);
  return output_ids_.size() > plan_.min_tokens ? stop_strings_.Feed(text)
                                               : stop_strings_.Pass(text);
}

void Generation::Deliver(std::span<const uint32_t> ids) {
  space_ = worker_->space;
  const std::string& name = worker_->name();
  if (workers_.empty() || workers_.back() != name) workers_.push_back(name);
  std::string text;
  size_t used = 0;  // tokens behind a stop string are none of the answer's
  while (used < ids.size() && !stop_strings_.found()) {
    output_ids_.push_back(ids[used]);
    text += Text(ids[used++]);
  }
  sink_->OnTokens(ids.first(used), text, name);
  if (!stop_strings_.found()) return;
  finish_ = v1::STOP;
  Abandon(absl::CancelledError("a stop string was found"));
}

// The answer is whole, though the worker has not said so.
Status Generation::Complete() {
  usage_.set_prompt_tokens(static_cast<uint32_t>(plan_.prompt_ids.size()));
  usage_.set_completion_tokens(static_cast<uint32_t>(output_ids_.size()));
  return absl::OkStatus();
}

// How the attempt ended, from the stream's status, its last message and why it was given up.
Status Generation::EndStatus(const Status& stream_status, const Status& abandoned) {
  if (Status why = cancelled(); !why.ok()) return why;
  if (overrun_) return abandoned;
  if (stop_strings_.found()) return Complete();
  if (finish_ == v1::STOP || finish_ == v1::LENGTH) return absl::OkStatus();
  if (absl::IsDataLoss(stream_status)) return stream_status;  // not even when it looks complete
  // Complete, and only its last message was lost: there is nothing to ask another worker for.
  if (!output_ids_.empty() && stop_ids_.contains(output_ids_.back())) {
    finish_ = v1::STOP;
  } else if (output_ids_.size() == plan_.max_tokens) {
    finish_ = v1::LENGTH;
  }
  if (finish_ == v1::STOP || finish_ == v1::LENGTH) return Complete();
  if (!abandoned.ok()) return abandoned;
  if (!stream_status.ok()) return stream_status;
  if (finish_ == v1::CANCELLED) {
    return absl::DeadlineExceededError("the worker cancelled the request");
  }
  return absl::InternalError("the worker's stream ended without a finish reason");
}

// The attempt is over for placement and for the table of killers.
void Generation::CloseBooks(bool broken) {
  core_->placement->OnEnd(ticket_);
  if (broken) {
    core_->killers->OnBroken(instance_id_, fingerprint_);
  } else {
    core_->killers->End(instance_id_, fingerprint_);
  }
}

void Generation::OnDone(Status stream_status, bool reached) {
  // Not by us (EndStatus knows): a server that is torn down cuts its streams in this way.
  if (absl::IsCancelled(stream_status)) stream_status = absl::UnavailableError("cut by the worker");
  Running ended;
  {
    MutexLock lock(mutex_);
    std::swap(ended, running_);
  }
  // What a living worker says has other codes: UNAVAILABLE is the transport's word on a dead one,
  // unless the worker drains. One that was not reached has not died of this request.
  const bool unavailable = absl::IsUnavailable(stream_status);
  const bool handover = unavailable && worker_->draining;
  CloseBooks(unavailable && !handover && reached && ended.abandoned.ok() && cancelled().ok());
  Status status = EndStatus(stream_status, ended.abandoned);
  if (status.ok()) {
    core_->killers->OnFinished(fingerprint_);
    std::string rest = stop_strings_.Feed(detokenizer_.Finish());
    rest += stop_strings_.Finish();
    if (!rest.empty()) sink_->OnTokens({}, rest, worker_->name());
    if (stop_strings_.found()) finish_ = v1::STOP;
    return End(status);
  }
  if (Status why = cancelled(); !why.ok()) return End(why);
  Log(LogLevel::kWarning, handover ? "worker hands over" : "attempt failed",
      {{"request", plan_.request_id},
       {"worker", worker_->name()},
       {"attempt", attempts_},
       {"delivered_tokens", output_ids_.size()},
       {"status", status}});
  // Of this worker's KV pool alone: the client hears of it only if no worker said anything else.
  const bool too_large = absl::IsOutOfRange(status);
  if (!too_large || last_error_.ok()) last_error_ = PublicError(status);
  failed_.insert(instance_id_);
  if (!Retryable(status, resuming())) return End(last_error_);
  if (handover) ++handovers_;
  if (handover || too_large) --(resumed_ > 0 ? charged_resumes_ : charged_before_);
  Attempt();
}

void Generation::End(const Status& status) {
  usage_.set_retries(attempts_ > 1 ? static_cast<uint32_t>(attempts_ - 1) : 0);
  usage_.set_resumed(resumed_);
  usage_.clear_workers();
  for (const std::string& name : workers_) usage_.add_workers(name);
  std::shared_ptr<GenerationSink> sink = std::move(sink_);
  sink->OnEnd(status, finish_, usage_);
  core_->active->Remove(this);  // last: a router that stops waits for it, and the client is to hear
}

}  // namespace pagoda::router
