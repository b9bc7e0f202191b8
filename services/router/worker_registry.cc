#include "services/router/worker_registry.h"

#include <algorithm>
#include <utility>

#include "common/base/address.h"
#include "common/base/logging.h"
#include "common/base/version.h"
#include "common/kv/identity.h"
#include "services/router/field_error.h"

namespace pagoda::router {
namespace {

StatusOr<SpaceFields> ReadSpaceFields(const v1::SpaceFields& fields) {
  SpaceFields space;
  PAGODA_ASSIGN_OR_RETURN(space.weights, WeightsDigest::FromBytes(fields.weights()));
  if (!fields.adapter().empty()) {
    PAGODA_ASSIGN_OR_RETURN(Space adapter, Space::FromBytes(fields.adapter()));
    space.adapter = adapter.bytes;
  }
  space.kv_format = fields.kv_format();
  space.block_tokens = fields.block_tokens();
  PAGODA_ASSIGN_OR_RETURN(Space layout, Space::FromBytes(fields.layout()));
  space.layout = layout.bytes;
  space.rope = fields.rope();
  space.numerics = fields.numerics();
  if (space.block_tokens == 0) return absl::InvalidArgumentError("block_tokens is 0");
  return space;
}

const char* HangName(Hang hang) {
  switch (hang) {
    case Hang::kFrozen:
      return "frozen";
    case Hang::kStuck:
      return "stuck";
    case Hang::kNone:
      break;
  }
  return "well again";
}

}  // namespace

WorkerRegistry::WorkerRegistry(const Options& options, std::shared_ptr<const ServedModel> model,
                               placement::Placement* placement, KillerTable* killers,
                               const Clock* clock)
    : options_(options),
      model_(std::move(model)),
      placement_(placement),
      killers_(killers),
      clock_(clock) {}

Status WorkerRegistry::Check(const v1::RegisterRequest& request, Space* space) const {
  if (!IsProcessName(request.name())) {
    return InvalidField("name", Quote(request.name()) + " is not 1 to 63 of a-z, 0-9 and -");
  }
  if (request.instance_id() == 0) return InvalidField("instance_id", "missing");
  if (Status address = ParseHostPort(request.grpc_address()).status(); !address.ok()) {
    return InvalidField("grpc_address", std::string(address.message()));
  }
  auto fields = ReadSpaceFields(request.space());
  if (!fields.ok()) return InvalidField("space", std::string(fields.status().message()));
  *space = MakeSpace(*fields);
  auto [min, max] = std::pair(request.protocol().min(), request.protocol().max());
  if (min > kProtocolMax || max < kProtocolMin) {
    return absl::FailedPreconditionError("no common protocol version: the router speaks " +
                                         std::to_string(kProtocolMin) + " to " +
                                         std::to_string(kProtocolMax) + ", the worker " +
                                         std::to_string(min) + " to " + std::to_string(max));
  }
  if (!request.text_digest().empty() &&
      request.text_digest() != std::string(AsBytes(model_->text().digest()))) {
    return absl::FailedPreconditionError(
        "the worker serves another model than the router: their tokenizers differ");
  }
  return absl::OkStatus();
}

Status WorkerRegistry::MakeRoom(const v1::RegisterRequest& request) {
  for (auto& [instance_id, entry] : entries_) {
    if (entry.worker->name() != request.name() || instance_id == request.instance_id()) continue;
    if (entry.stream != 0) {
      return absl::AlreadyExistsError("another live worker is called " + request.name());
    }
    Erase(instance_id);
    break;
  }
  if (entries_.size() >= options_.max_workers) {
    // Those that registered and never reported are the first to go.
    auto silent = std::find_if(entries_.begin(), entries_.end(),
                               [](auto& entry) { return entry.second.stream == 0; });
    if (silent == entries_.end()) {
      return absl::ResourceExhaustedError("the limit of " + std::to_string(options_.max_workers) +
                                          " workers is reached");
    }
    Erase(silent->first);
  }
  return absl::OkStatus();
}

StatusOr<v1::RegisterResponse> WorkerRegistry::Register(const v1::RegisterRequest& request) {
  auto worker = std::make_shared<RegisteredWorker>();
  PAGODA_RETURN_IF_ERROR(Check(request, &worker->space));
  worker->registration = request;
  worker->client = WorkerClient::Create(request.grpc_address());
  v1::RegisterResponse response;
  response.set_router_id(options_.router_id);
  response.set_protocol(std::min<uint32_t>(request.protocol().max(), kProtocolMax));
  response.set_report_interval_ms(options_.report_interval_ms);
  response.set_space(std::string(worker->space.view()));
  {
    MutexLock lock(mutex_);
    Erase(request.instance_id());
    PAGODA_RETURN_IF_ERROR(MakeRoom(request));
    entries_[request.instance_id()] = {.worker = std::move(worker)};
  }
  Log(LogLevel::kInfo, "worker registered",
      {{"worker", request.name()}, {"address", request.grpc_address()}});
  return response;
}

StatusOr<v1::ReportResponse> WorkerRegistry::OnReport(uint64_t stream,
                                                      const v1::ReportRequest& report) {
  MutexLock lock(mutex_);
  auto found = entries_.find(report.instance_id());
  if (found == entries_.end()) {
    return absl::NotFoundError("the instance is not registered: register again");
  }
  Entry& entry = found->second;
  if (entry.stream == 0) {
    const v1::RegisterRequest& registration = entry.worker->registration;
    placement_->AddWorker({.instance_id = report.instance_id(),
                           .name = registration.name(),
                           .space = entry.worker->space,
                           .max_num_seqs = registration.limits().max_num_seqs(),
                           .total_blocks = registration.limits().total_blocks()});
    Log(LogLevel::kInfo, "worker ready", {{"worker", registration.name()}});
  }
  entry.stream = stream;
  entry.last_report = report;
  placement_->SetPrefillRate(report.instance_id(), report.prefill_tokens_per_second());
  entry.worker->draining = entry.draining || report.draining();
  TimePoint now = clock_->Now();
  entry.health.OnReport(now, report);
  SetHang(report.instance_id(), entry, entry.health.Check(now, options_.health));
  UpdatePlacement(report.instance_id(), entry);
  killers_->OnReport(report.instance_id());
  return v1::ReportResponse();
}

void WorkerRegistry::OnReportsEnded(uint64_t stream) {
  MutexLock lock(mutex_);
  for (auto& [instance_id, entry] : entries_) {
    if (entry.stream != stream) continue;
    Log(LogLevel::kWarning, "worker gone: its report stream ended",
        {{"worker", entry.worker->name()}});
    if (entry.worker->draining) {
      killers_->OnWorkerLeft(instance_id);
    } else {
      killers_->OnWorkerGone(instance_id);
    }
    Erase(instance_id);
    return;
  }
}

void WorkerRegistry::SetHang(uint64_t instance_id, Entry& entry, Hang hang) {
  if (hang == entry.hang) return;
  entry.hang = hang;
  if (hang != Hang::kNone) killers_->OnWorkerHangs(instance_id);
  Log(LogLevel::kWarning, std::string("worker ") + HangName(hang),
      {{"worker", entry.worker->name()}});
}

void WorkerRegistry::UpdatePlacement(uint64_t instance_id, const Entry& entry) {
  placement_->SetAccepting(instance_id, !entry.worker->draining && entry.hang == Hang::kNone);
}

std::map<uint64_t, Hang> WorkerRegistry::CheckHealth(Duration stalled) {
  std::map<uint64_t, Hang> hanging;
  std::vector<std::shared_ptr<WorkerClient>> unused;  // freed after the lock
  TimePoint now = clock_->Now();
  MutexLock lock(mutex_);
  for (auto& client : retired_) {
    if (client.use_count() == 1) unused.push_back(std::move(client));
  }
  std::erase(retired_, nullptr);
  for (auto& [instance_id, entry] : entries_) {
    if (entry.stream == 0) continue;
    entry.health.Forgive(stalled);
    SetHang(instance_id, entry, entry.health.Check(now, options_.health));
    UpdatePlacement(instance_id, entry);
    if (entry.hang != Hang::kNone) hanging.emplace(instance_id, entry.hang);
  }
  return hanging;
}

void WorkerRegistry::Erase(uint64_t instance_id) {
  placement_->RemoveWorker(instance_id);
  auto found = entries_.find(instance_id);
  if (found == entries_.end()) return;
  retired_.push_back(found->second.worker->client);
  entries_.erase(found);
}

Status WorkerRegistry::Drain(const std::string& name) {
  MutexLock lock(mutex_);
  for (auto& [instance_id, entry] : entries_) {
    if (entry.worker->name() != name) continue;
    entry.draining = true;
    entry.worker->draining = true;
    UpdatePlacement(instance_id, entry);
    return absl::OkStatus();
  }
  return absl::NotFoundError("worker " + Quote(name) + " is not known");
}

v1::ListWorkersResponse WorkerRegistry::List() const {
  v1::ListWorkersResponse response;
  MutexLock lock(mutex_);
  for (const auto& [instance_id, entry] : entries_) {
    const v1::RegisterRequest& registration = entry.worker->registration;
    const v1::ReportRequest& report = entry.last_report;
    auto* out = response.add_workers();
    out->set_name(registration.name());
    out->set_state(entry.stream == 0           ? "lost"
                   : entry.hang != Hang::kNone ? HangName(entry.hang)
                   : entry.worker->draining    ? "draining"
                                               : "ready");
    out->set_grpc_address(registration.grpc_address());
    out->set_http_address(registration.http_address());
    out->set_pid(registration.pid());
    out->set_instance_id(instance_id);
    out->set_running(report.running());
    out->set_waiting(report.waiting());
    out->set_free_blocks(report.free_blocks());
    out->set_total_blocks(report.total_blocks());
    out->set_space(entry.worker->space.ToHex());
  }
  std::sort(response.mutable_workers()->begin(), response.mutable_workers()->end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
  return response;
}

std::shared_ptr<const RegisteredWorker> WorkerRegistry::Find(uint64_t instance_id) const {
  MutexLock lock(mutex_);
  auto found = entries_.find(instance_id);
  return found == entries_.end() ? nullptr : found->second.worker;
}

std::vector<std::shared_ptr<const RegisteredWorker>> WorkerRegistry::Live() const {
  std::vector<std::shared_ptr<const RegisteredWorker>> live;
  MutexLock lock(mutex_);
  for (const auto& [instance_id, entry] : entries_) {
    if (entry.stream != 0) live.push_back(entry.worker);
  }
  return live;
}

uint32_t WorkerRegistry::max_model_len() const {
  uint32_t shortest = model_->context_length();
  for (const auto& worker : Live()) {
    uint32_t limit = worker->registration.limits().max_model_len();
    if (limit > 0) shortest = std::min(shortest, limit);
  }
  return shortest;
}

}  // namespace pagoda::router
