#include "services/router/killer_table.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <string>

#include "common/base/bytes.h"
#include "common/base/sha256.h"

namespace pagoda::router {
namespace {

// Of 3 points: two workers, one of them alone; or three in company.
constexpr int kAlone = 2;
constexpr int kInCompany = 1;

void AppendIds(const std::vector<uint32_t>& ids, Sha256& hash) {
  const auto size = static_cast<uint64_t>(ids.size());
  hash.Update({reinterpret_cast<const char*>(&size), sizeof(size)});
  hash.Update({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(uint32_t)});
}

// Equal for equal messages, in this process: maps have no order of their own.
std::string Serialized(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

}  // namespace

// Within this process only, so the host's byte order will do.
RequestFingerprint FingerprintOf(const RequestPlan& plan) {
  Sha256 hash;
  AppendIds(plan.prompt_ids, hash);
  AppendIds(plan.stop_token_ids, hash);
  const uint32_t limits[] = {plan.max_tokens, plan.ignore_eos ? 1u : 0u};
  hash.Update({reinterpret_cast<const char*>(limits), sizeof(limits)});
  v1::SamplingParams sampling = plan.sampling;
  sampling.clear_seed();
  hash.Update(Serialized(sampling));
  return RequestFingerprint{LoadLe<uint64_t>(hash.Finish().data())};
}

void KillerTable::Begin(uint64_t instance_id, RequestFingerprint request) {
  MutexLock lock(mutex_);
  ++workers_[instance_id].running[request];
}

void KillerTable::EndOne(Worker& worker, RequestFingerprint request) {
  auto running = worker.running.find(request);
  if (running != worker.running.end() && --running->second == 0) worker.running.erase(running);
}

void KillerTable::EraseIfIdle(uint64_t instance_id) {
  auto found = workers_.find(instance_id);
  if (found == workers_.end() || !found->second.running.empty()) return;
  if (found->second.gone || found->second.broken.empty()) workers_.erase(found);
}

void KillerTable::End(uint64_t instance_id, RequestFingerprint request) {
  MutexLock lock(mutex_);
  auto found = workers_.find(instance_id);
  if (found == workers_.end()) return;
  EndOne(found->second, request);
  EraseIfIdle(instance_id);
}

void KillerTable::OnBroken(uint64_t instance_id, RequestFingerprint request) {
  MutexLock lock(mutex_);
  auto found = workers_.find(instance_id);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  if (!worker.gone) {
    Accuse(instance_id, worker, request);
    worker.broken[request] = 0;
  }
  EndOne(worker, request);
  EraseIfIdle(instance_id);
}

void KillerTable::Accuse(uint64_t instance_id, const Worker& worker, RequestFingerprint request) {
  auto others = [request](const auto& entry) { return entry.first != request; };
  const bool company = std::any_of(worker.running.begin(), worker.running.end(), others) ||
                       std::any_of(worker.broken.begin(), worker.broken.end(), others);
  if (!suspects_.contains(request)) MakeRoom();
  Suspect& suspect = suspects_[request];
  suspect.points.try_emplace(instance_id, company ? kInCompany : kAlone);
  suspect.last = clock_->Now();
}

void KillerTable::Withdraw(uint64_t instance_id, RequestFingerprint request) {
  auto suspect = suspects_.find(request);
  if (suspect == suspects_.end()) return;
  suspect->second.points.erase(instance_id);
  if (suspect->second.points.empty()) suspects_.erase(suspect);
}

void KillerTable::MakeRoom() {
  if (suspects_.size() < kMaxSuspects) return;
  std::erase_if(suspects_, [now = clock_->Now()](const auto& entry) {
    return now - entry.second.last > kMemory;
  });
  if (suspects_.size() < kMaxSuspects) return;
  suspects_.erase(
      std::min_element(suspects_.begin(), suspects_.end(),
                       [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
}

void KillerTable::AccuseRunning(uint64_t instance_id, const Worker& worker) {
  for (const auto& [request, attempts] : worker.running) Accuse(instance_id, worker, request);
}

void KillerTable::OnWorkerHangs(uint64_t instance_id) {
  MutexLock lock(mutex_);
  auto found = workers_.find(instance_id);
  if (found != workers_.end()) AccuseRunning(instance_id, found->second);
}

void KillerTable::OnWorkerGone(uint64_t instance_id) {
  MutexLock lock(mutex_);
  auto found = workers_.find(instance_id);
  if (found == workers_.end()) return;
  AccuseRunning(instance_id, found->second);
  found->second.gone = true;
  EraseIfIdle(instance_id);
}

void KillerTable::OnReport(uint64_t instance_id) {
  MutexLock lock(mutex_);
  auto found = workers_.find(instance_id);
  if (found == workers_.end()) return;
  auto& broken = found->second.broken;
  for (auto entry = broken.begin(); entry != broken.end();) {
    if (++entry->second < kReportsOfALivingWorker) {
      ++entry;
      continue;
    }
    Withdraw(instance_id, entry->first);
    entry = broken.erase(entry);
  }
  EraseIfIdle(instance_id);
}

void KillerTable::OnWorkerLeft(uint64_t instance_id) {
  MutexLock lock(mutex_);
  auto found = workers_.find(instance_id);
  if (found == workers_.end()) return;
  for (const auto& [request, reports] : found->second.broken) Withdraw(instance_id, request);
  workers_.erase(found);
}

void KillerTable::OnFinished(RequestFingerprint request) {
  MutexLock lock(mutex_);
  suspects_.erase(request);
}

bool KillerTable::Refused(RequestFingerprint request) {
  MutexLock lock(mutex_);
  auto suspect = suspects_.find(request);
  if (suspect == suspects_.end()) return false;
  if (clock_->Now() - suspect->second.last > kMemory) {
    suspects_.erase(suspect);
    return false;
  }
  int points = 0;
  for (const auto& [instance_id, of_this] : suspect->second.points) points += of_this;
  return points >= kGuilty;
}

}  // namespace pagoda::router
