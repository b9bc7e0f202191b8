#include "common/placement/placement.h"

#include <algorithm>
#include <utility>

namespace pagoda::placement {
namespace {

// Used until a worker reports its own; equal for all, so that it decides nothing by itself.
constexpr double kFirstPrefillRate = 1000;  // tokens per second
constexpr double kFirstDecodeSeconds = 2;
constexpr double kLearningRate = 0.1;  // of the moving average: follows a change in ~10 requests

}  // namespace

Placement::Worker::Worker(const WorkerInfo& info)
    : info(info),
      known(info.total_blocks > 0 ? std::min<size_t>(info.total_blocks, kMaxKnownKeys)
                                  : kMaxKnownKeys),
      prefill_tokens_per_second(kFirstPrefillRate),
      decode_seconds(kFirstDecodeSeconds) {}

Placement::Placement(std::unique_ptr<PlacementPolicy> policy, const Clock* clock)
    : clock_(clock), policy_(std::move(policy)) {}

void Placement::AddWorker(const WorkerInfo& info) {
  MutexLock lock(mutex_);
  workers_.try_emplace(info.instance_id, info);
}

void Placement::RemoveWorker(uint64_t instance_id) {
  MutexLock lock(mutex_);
  workers_.erase(instance_id);
  std::erase_if(attempts_, [&](auto& entry) { return entry.second.instance_id == instance_id; });
}

void Placement::SetAccepting(uint64_t instance_id, bool accepting) {
  MutexLock lock(mutex_);
  auto worker = workers_.find(instance_id);
  if (worker != workers_.end()) worker->second.accepting = accepting;
}

void Placement::SetPrefillRate(uint64_t instance_id, double tokens_per_second) {
  MutexLock lock(mutex_);
  auto worker = workers_.find(instance_id);
  if (worker == workers_.end() || !(tokens_per_second > 0)) return;
  worker->second.prefill_tokens_per_second = tokens_per_second;
}

size_t Placement::KnownBlocks(const Worker& worker, const PlacementRequest& request,
                              const PrefixKeys** prefix) {
  *prefix = nullptr;
  for (const PrefixKeys& keys : request.prefixes) {
    if (keys.space == worker.info.space && keys.block_tokens > 0) *prefix = &keys;
  }
  if (*prefix == nullptr || request.prompt_tokens == 0) return 0;
  size_t usable = (request.prompt_tokens - 1) / (*prefix)->block_tokens;
  return std::min(usable, worker.known.LeadingKnown((*prefix)->fingerprints));
}

std::vector<const Placement::Worker*> Placement::Candidates(const PlacementRequest& request,
                                                            Status* why_none) const {
  std::vector<const Worker*> candidates;
  bool pinned_exists = false;
  for (const auto& [instance_id, worker] : workers_) {
    if (!request.pinned.empty() && worker.info.name != request.pinned) continue;
    pinned_exists = true;
    if (!worker.accepting || request.excluded.contains(instance_id)) continue;
    if (request.space && !(*request.space == worker.info.space)) continue;
    candidates.push_back(&worker);
  }
  std::sort(candidates.begin(), candidates.end(), [](const Worker* a, const Worker* b) {
    return std::tie(a->info.name, a->info.instance_id) <
           std::tie(b->info.name, b->info.instance_id);
  });
  if (!request.pinned.empty() && !pinned_exists && request.excluded.empty()) {
    *why_none = absl::InvalidArgumentError("worker \"" + request.pinned + "\" is not known");
  } else {
    *why_none = absl::UnavailableError("no worker can take the request now");
  }
  return candidates;
}

StatusOr<Placed> Placement::Place(const PlacementRequest& request) {
  MutexLock lock(mutex_);
  Status why_none;
  std::vector<const Worker*> candidates = Candidates(request, &why_none);
  if (candidates.empty()) return why_none;

  std::vector<WorkerView> views;
  const PrefixKeys* prefix = nullptr;
  for (const Worker* worker : candidates) {
    size_t known_blocks = KnownBlocks(*worker, request, &prefix);
    WorkerView& view = views.emplace_back();
    view.name = worker->info.name;
    view.known_tokens =
        prefix == nullptr ? 0 : static_cast<uint32_t>(known_blocks * prefix->block_tokens);
    view.requests = worker->requests;
    view.decoding = worker->decoding;
    view.waiting_prefill_tokens = worker->waiting_prefill_tokens;
    view.max_num_seqs = worker->info.max_num_seqs;
    view.prefill_tokens_per_second = worker->prefill_tokens_per_second;
    view.decode_seconds = worker->decode_seconds;
  }
  Placed placed;
  placed.decision = policy_->Choose(request.prompt_tokens, views);
  if (!request.pinned.empty()) placed.decision.reason = Reason::kPinned;
  placed.instance_id = candidates[placed.decision.index]->info.instance_id;
  placed.ticket = next_ticket_++;

  Worker& worker = workers_.at(placed.instance_id);
  KnownBlocks(worker, request, &prefix);
  if (prefix != nullptr) worker.known.Touch(prefix->fingerprints);
  uint32_t known_tokens = placed.decision.known_tokens;
  Attempt attempt;
  attempt.instance_id = placed.instance_id;
  attempt.prefill_tokens =
      request.prompt_tokens > known_tokens ? request.prompt_tokens - known_tokens : 1;
  worker.requests += 1;
  worker.waiting_prefill_tokens += attempt.prefill_tokens;
  attempts_.emplace(placed.ticket, attempt);
  return placed;
}

void Placement::OnFirstToken(uint64_t ticket) {
  MutexLock lock(mutex_);
  auto attempt = attempts_.find(ticket);
  if (attempt == attempts_.end() || attempt->second.decoding) return;
  attempt->second.decoding = true;
  attempt->second.first_token = clock_->Now();
  Worker& worker = workers_.at(attempt->second.instance_id);
  worker.waiting_prefill_tokens -= attempt->second.prefill_tokens;
  worker.decoding += 1;
}

void Placement::OnEnd(uint64_t ticket) {
  MutexLock lock(mutex_);
  auto found = attempts_.find(ticket);
  if (found == attempts_.end()) return;
  const Attempt attempt = found->second;
  attempts_.erase(found);
  Worker& worker = workers_.at(attempt.instance_id);
  worker.requests -= 1;
  if (!attempt.decoding) {
    worker.waiting_prefill_tokens -= attempt.prefill_tokens;
    return;
  }
  worker.decoding -= 1;
  double seconds = ToSeconds(clock_->Now() - attempt.first_token);
  worker.decode_seconds += kLearningRate * (seconds - worker.decode_seconds);
}

size_t Placement::num_workers() const {
  MutexLock lock(mutex_);
  return workers_.size();
}

size_t Placement::num_in_flight() const {
  MutexLock lock(mutex_);
  return attempts_.size();
}

Status Placement::CheckIntegrity() const {
  MutexLock lock(mutex_);
  struct Sums {
    uint64_t requests = 0, decoding = 0, waiting = 0;
  };
  std::map<uint64_t, Sums> sums;
  for (const auto& [ticket, attempt] : attempts_) {
    if (!workers_.contains(attempt.instance_id)) {
      return absl::FailedPreconditionError("an attempt belongs to a removed worker");
    }
    Sums& sum = sums[attempt.instance_id];
    sum.requests += 1;
    sum.decoding += attempt.decoding ? 1 : 0;
    sum.waiting += attempt.decoding ? 0 : attempt.prefill_tokens;
  }
  for (const auto& [instance_id, worker] : workers_) {
    const Sums& sum = sums[instance_id];
    if (sum.requests != worker.requests || sum.decoding != worker.decoding ||
        sum.waiting != worker.waiting_prefill_tokens) {
      return absl::FailedPreconditionError("the books of worker " + worker.info.name +
                                           " do not add up");
    }
  }
  return absl::OkStatus();
}

}  // namespace pagoda::placement
