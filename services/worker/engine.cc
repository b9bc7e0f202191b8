#include "services/worker/engine.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "common/base/logging.h"
#include "services/worker/request_check.h"
#include "services/worker/step_plan_builder.h"

namespace pagoda::worker {
namespace {

// Slow or stuck loads may hold half of the pool; compute keeps the rest.
constexpr int32_t kLoadingShare = 2;

Scheduler::Options SchedulerOptions(const Engine::Options& options) {
  Scheduler::Options scheduler = options.scheduler;
  scheduler.max_loading_blocks = std::max(1, options.num_blocks / kLoadingShare);
  return scheduler;
}

StepLimits LimitsOf(const Engine::Options& options) {
  return {.max_num_batched_tokens = options.scheduler.max_num_batched_tokens,
          .max_num_seqs = options.scheduler.max_num_seqs,
          .max_blocks_per_seq = BlocksFor(options.max_model_len, options.scheduler.block_tokens)};
}

}  // namespace

struct Engine::Live {
  std::unique_ptr<Sequence> sequence;
  std::shared_ptr<TokenSink> sink;
  TimePoint submitted;
  TimePoint last_token;  // the epoch before the first one
  KvTransfer::Acknowledged pushed = std::make_shared<std::atomic<uint32_t>>(0);
};

Engine::Engine(const Options& options, ModelRunner* runner, BlockMemory* memory,
               KvTransfer* transfer, EngineMetrics* metrics, Clock* clock)
    : options_(options),
      runner_(runner),
      memory_(memory),
      transfer_(transfer),
      metrics_(metrics),
      clock_(clock),
      blocks_(options.num_blocks),
      scheduler_(SchedulerOptions(options), &blocks_),
      recheck_(options.recheck, &blocks_, memory),
      prefill_rate_(options.prefill_tokens_per_second),
      plan_(LimitsOf(options)) {
  if (transfer_ != nullptr) {
    transfer_->SetEventHandler(
        [this](TransferEvent event) { inbox_.PushTransfer(std::move(event)); });
  }
  UpdateStats();
}

Engine::~Engine() { Stop(); }

void Engine::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Engine::Run() {
  pthread_setname_np(pthread_self(), "engine");
  while (!stopping_) RunOnce(TimePoint::max());
}

StatusOr<SequenceId> Engine::Submit(GenerationRequest request, std::shared_ptr<TokenSink> sink) {
  const auto& scheduler = options_.scheduler;
  RequestLimits limits{.vocabulary_size = options_.vocabulary_size,
                       .max_model_len = options_.max_model_len,
                       .block_tokens = scheduler.block_tokens,
                       .num_blocks = options_.num_blocks,
                       .max_prefill_tokens =
                           scheduler.enable_chunked_prefill ? 0 : scheduler.max_num_batched_tokens};
  PAGODA_RETURN_IF_ERROR(CheckRequest(request, limits));
  TimePoint now = clock_->Now();
  BlockKeyChain keys(request.cache.tenant_namespace, request.cache.shared_namespace,
                     request.cache.scope, static_cast<uint32_t>(scheduler.block_tokens));
  SequenceId id;
  {
    MutexLock lock(mutex_);
    id = SequenceId{next_id_++};
  }
  // Hashing the prompt is done here, on the caller's thread.
  auto sequence = std::make_unique<Sequence>(id, std::move(request), std::move(keys), now);
  PAGODA_RETURN_IF_ERROR(CheckBlockKeys(sequence->request(), sequence->refs()));
  MutexLock lock(mutex_);
  if (draining_) return absl::UnavailableError("this worker is draining");
  const int32_t limit = scheduler.max_num_seqs + options_.max_waiting;
  if (num_live_ >= limit) {
    return absl::ResourceExhaustedError("requests: " + std::to_string(num_live_) +
                                        " are running or waiting, the limit is " +
                                        std::to_string(limit));
  }
  ++num_live_;
  // Under the lock, so that Stop cannot miss it.
  inbox_.PushRequest({std::move(sequence), std::move(sink), now});
  return id;
}

void Engine::Cancel(SequenceId id) { inbox_.PushCancel(id); }

void Engine::Wake() { inbox_.Wake(); }

void Engine::Drain() {
  MutexLock lock(mutex_);
  draining_ = true;
}

bool Engine::WaitUntilIdle(TimePoint deadline) {
  MutexLock lock(mutex_);
  while (num_live_ > 0) {
    if (!idle_.WaitUntil(mutex_, deadline)) return num_live_ == 0;
  }
  return true;
}

void Engine::Stop(Duration push_grace) {
  Drain();
  stopping_ = true;
  inbox_.Wake();
  if (thread_.joinable()) thread_.join();
  for (NewRequest& request : inbox_.Take(TimePoint{}).requests) Accept(std::move(request));
  std::vector<Sequence*> left;
  for (const auto& [id, live] : live_) left.push_back(live->sequence.get());
  for (Sequence* sequence : left) {
    Finish(*sequence, FinishReason::kError, absl::UnavailableError("this worker is stopping"));
  }
  if (transfer_ == nullptr) return;
  transfer_->WaitUntilIdle(clock_->Now() + push_grace);
  transfer_->Stop();  // until nobody writes into the pool
}

EngineStats Engine::stats() const {
  MutexLock lock(mutex_);
  return stats_;
}

bool Engine::RunOnce(TimePoint idle_until) {
  TimePoint wait_until = busy_ ? TimePoint{} : std::min(idle_until, NextDeadline());
  EngineInbox::Input input = inbox_.Take(wait_until);
  std::set<SequenceId> cancels = std::move(input.cancels);
  TakeInput(std::move(input));
  TimePoint now = clock_->Now();
  EndCancelledAndExpired(cancels, now);
  for (auto& [id, live] : live_) live->sequence->paused = !live->sink->HasRoom();
  const Scheduler::Step& step = scheduler_.Schedule(now);
  metrics_->num_preemptions.Increment(static_cast<double>(step.preempted.size()));
  // From the first block on: what this pool still holds of it may be gone when its turn comes.
  for (Sequence* sequence : step.preempted) AskStore(*sequence, 0);
  const bool rechecks =
      scheduler_.HasSpareRows(options_.scheduler.block_tokens) && recheck_.TryStart();
  PoisonFreed();  // before anything is written into a block that was freed
  StartLoads(step, now);
  const bool computes = !step.chunks.empty() || rechecks;
  if (computes) {
    Status status = Compute(step);
    if (status.ok()) {
      CountStep(step);  // before anyone can hear of its tokens
      Publish(step);
    } else {
      Log(LogLevel::kError, "a step failed", {{"error", status}, {"rows", step.num_rows}});
      for (const Scheduler::Chunk& chunk : step.chunks) {
        Finish(*chunk.sequence, FinishReason::kError,
               absl::InternalError("the step of this request failed"));
      }
    }
    EndRecheck(status.ok());
    QuarantineSuspects();
  }
  CancelAbandonedLoads();
  UpdateStats();
  busy_ = computes || !step.preempted.empty();
  return computes;
}

void Engine::TakeInput(EngineInbox::Input input) {
  for (NewRequest& request : input.requests) Accept(std::move(request));
  for (const TransferEvent& event : input.transfers) {
    std::visit([this](const auto& e) { On(e); }, event);
  }
}

void Engine::Accept(NewRequest request) {
  auto live = std::make_unique<Live>();
  live->sequence = std::move(request.sequence);
  live->sink = std::move(request.sink);
  live->submitted = request.submitted;
  Sequence* sequence = live->sequence.get();
  live_.emplace(sequence->id(), std::move(live));
  scheduler_.Add(sequence);
  if (!stopping_) AskStore(*sequence, blocks_.ProbePrefix(sequence->matchable()).matched);
}

void Engine::AskStore(Sequence& sequence, int32_t first) {
  if (transfer_ == nullptr || !transfer_->loads()) return;
  std::span<const BlockRef> refs = sequence.matchable().subspan(first);
  if (refs.empty()) return;                // nothing is missing
  if (!transfer_->StoreAnswers()) return;  // nobody waits for a store that is known to be ill
  sequence.lookup.pending = true;
  sequence.lookup.deadline =
      clock_->Now() + options_.store_patience.ForLookup(PredictedTime(refs.size()));
  transfer_->Lookup(sequence.id(), sequence.request(), {refs.begin(), refs.end()}, first,
                    sequence.lookup.deadline);
}

void Engine::On(const LookupDone& event) {
  auto it = live_.find(event.sequence);
  if (it == live_.end() || !it->second->sequence->lookup.pending) return;  // ended, or did not wait
  StoreLookup& lookup = it->second->sequence->lookup;
  lookup.pending = false;
  lookup.held = event.held;
}

void Engine::On(const BlockLoaded& event) {
  auto taken =
      scheduler_.OnBlockLoaded(event.load, event.entry, event.ok, event.source, event.producer);
  if (taken) recheck_.OnLoaded(*taken->sequence, taken->block_index);
}

void Engine::EndCancelledAndExpired(const std::set<SequenceId>& cancels, TimePoint now) {
  std::vector<std::pair<Sequence*, FinishReason>> ended;
  for (const auto& [id, live] : live_) {
    if (cancels.contains(id)) {
      ended.emplace_back(live->sequence.get(), FinishReason::kCancelled);
    } else if (now >= live->sequence->request().deadline) {
      ended.emplace_back(live->sequence.get(), FinishReason::kDeadline);
    }
  }
  for (auto [sequence, reason] : ended) {
    Finish(*sequence, reason,
           reason == FinishReason::kCancelled
               ? absl::CancelledError("the request was cancelled")
               : absl::DeadlineExceededError("the request's deadline passed"));
  }
}

void Engine::PoisonFreed() {
  for (BlockId block : blocks_.TakeFreed()) {
    if (!options_.poison_freed_blocks) continue;
    std::span<std::byte> bytes = memory_->Bytes(block);
    std::memset(bytes.data(), 0xFF, bytes.size());
  }
}

void Engine::StartLoads(const Scheduler::Step& step, TimePoint now) {
  for (const Scheduler::LoadOrder& order : step.loads) {
    Sequence& sequence = *order.sequence;
    sequence.load_deadline =
        now + options_.store_patience.ForLoad(PredictedTime(order.entries.size()));
    std::vector<KvTransfer::LoadBlock> blocks;
    for (const LoadEntry& entry : order.entries) {
      blocks.push_back({sequence.refs()[entry.block_index], sequence.NamespaceOf(entry.block_index),
                        entry.block});
    }
    transfer_->Load(order.id, sequence.request(), std::move(blocks), sequence.load_deadline);
  }
}

Duration Engine::PredictedTime(size_t blocks) const {
  return prefill_rate_.Predict(static_cast<int64_t>(blocks) * options_.scheduler.block_tokens);
}

void Engine::CancelAbandonedLoads() {
  for (LoadId load : scheduler_.TakeAbandonedLoads()) transfer_->CancelLoad(load);
}

Status Engine::Compute(const Scheduler::Step& step) {
  BuildStepPlan(step, plan_);
  if (recheck_.running()) recheck_.AppendTo(plan_);
  TimePoint start = clock_->Now();
  PAGODA_ASSIGN_OR_RETURN(Ticket ticket, runner_->Launch(plan_));
  PAGODA_RETURN_IF_ERROR(runner_->Collect(ticket, result_));
  int32_t prefill_rows = 0;
  for (const Scheduler::Chunk& chunk : step.chunks) {
    if (chunk.count > 1) prefill_rows += chunk.count;
  }
  // A step of mixed rows says something about prompts when most of it is prompts.
  if (2 * prefill_rows > step.num_rows) prefill_rate_.Observe(prefill_rows, clock_->Now() - start);
  if (result_.samples.size() != static_cast<size_t>(plan_.num_samples)) {
    return absl::InternalError("the runner gave " + std::to_string(result_.samples.size()) +
                               " samples for " + std::to_string(plan_.num_samples));
  }
  return absl::OkStatus();
}

void Engine::Publish(const Scheduler::Step& step) {
  Push(scheduler_.OnComputed(step));
  for (Sequence* sequence : scheduler_.TakeCompletedPrompts()) {
    metrics_->CountPrompt(sequence->usage());
  }
  TimePoint now = clock_->Now();
  size_t sample = 0;
  for (const Scheduler::Chunk& chunk : step.chunks) {
    if (chunk.samples) Deliver(*chunk.sequence, result_.samples[sample++], now);
  }
}

void Engine::Push(const std::vector<Scheduler::SequenceBlock>& completed) {
  if (transfer_ == nullptr || !transfer_->pushes()) return;
  std::vector<KvTransfer::PushBlock> blocks;
  for (size_t i = 0; i < completed.size(); ++i) {
    Sequence& sequence = *completed[i].sequence;
    int32_t index = completed[i].block_index;
    blocks.push_back(
        {sequence.refs()[index], sequence.NamespaceOf(index), sequence.table.at(index).id});
    bool last = i + 1 == completed.size() || completed[i + 1].sequence != &sequence;
    if (!last) continue;
    transfer_->Push(sequence.request(), blocks, LiveOf(sequence).pushed);
    blocks.clear();
  }
}

void Engine::Deliver(Sequence& sequence, const SampledToken& sampled, TimePoint now) {
  switch (sampled.outcome) {
    case SampleOutcome::kToken:
      break;
    case SampleOutcome::kNonFiniteLogits:
      return EndNonFinite(sequence);
    case SampleOutcome::kNothingAllowed:
      return Finish(sequence, FinishReason::kError,
                    absl::InternalError("mask and penalties allow no token"));
  }
  Live& live = LiveOf(sequence);
  if (live.last_token == TimePoint{}) {
    live.sink->OnPromptDone(sequence.usage());
    metrics_->time_to_first_token_seconds.Observe(ToSeconds(now - live.submitted));
  } else {
    metrics_->inter_token_latency_seconds.Observe(ToSeconds(now - live.last_token));
  }
  live.last_token = now;
  metrics_->generation_tokens.Increment();
  std::optional<FinishReason> ends = sequence.Append(sampled.token);
  live.sink->OnToken(sampled.token);
  if (ends) Finish(sequence, *ends, absl::OkStatus());
}

void Engine::Finish(Sequence& sequence, FinishReason reason, Status status) {
  scheduler_.Remove(&sequence);
  auto node = live_.extract(sequence.id());
  Live& live = *node.mapped();
  GenerationResult result{.reason = reason, .status = std::move(status), .usage = sequence.usage()};
  result.usage.pushed = live.pushed->load(std::memory_order_relaxed);
  metrics_->request_success[static_cast<size_t>(reason)]->Increment();
  live.sink->OnFinish(result);
  MutexLock lock(mutex_);
  if (--num_live_ == 0) idle_.SignalAll();
}

TimePoint Engine::NextDeadline() const {
  TimePoint next = scheduler_.NextDeadline();
  for (const auto& [id, live] : live_) next = std::min(next, live->sequence->request().deadline);
  return next;
}

void Engine::CountStep(const Scheduler::Step& step) {
  const auto seqs = static_cast<int32_t>(step.chunks.size());
  MutexLock lock(mutex_);
  ++stats_.steps;
  stats_.max_step_seqs = std::max(stats_.max_step_seqs, seqs);
}

void Engine::UpdateStats() {
  int32_t pending = 0;
  for (const auto& [id, live] : live_) {
    pending += live->sequence->num_tokens() - live->sequence->table.frontier() - 1;
  }
  const auto running = static_cast<int32_t>(scheduler_.running().size());
  const auto waiting = static_cast<int32_t>(scheduler_.waiting().size());
  const int32_t available = blocks_.num_available();
  metrics_->num_requests_running.Set(running);
  metrics_->num_requests_waiting.Set(waiting);
  metrics_->kv_cache_usage_perc.Set(1.0 - static_cast<double>(available) / blocks_.num_blocks());
  MutexLock lock(mutex_);
  stats_.running = running;
  stats_.waiting = waiting;
  stats_.free_blocks = available;
  stats_.total_blocks = blocks_.num_blocks();
  stats_.pending_prefill_tokens = pending;
  stats_.prefill_tokens_per_second = prefill_rate_.tokens_per_second();
}

}  // namespace pagoda::worker
