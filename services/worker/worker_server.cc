#include "services/worker/worker_server.h"

#include <unistd.h>

#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/logging.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/base/version.h"
#include "common/http/http_server.h"
#include "common/http/service_endpoints.h"
#include "common/kv/breaker_store.h"
#include "common/model/gguf.h"
#include "common/rpc/remote_block_store.h"
#include "common/rpc/server.h"
#include "common/text/gguf_text.h"
#include "common/text/text_model.h"
#include "services/worker/cpu_backend.h"
#include "services/worker/engine.h"
#include "services/worker/generate_service.h"
#include "services/worker/model_identity.h"
#include "services/worker/registrar.h"

namespace pagoda::worker {
namespace {

// A healthy store takes what is on its way in milliseconds; without one nothing is lost but time.
constexpr Duration kPushGrace = std::chrono::seconds(2);

class Server final : public WorkerServer {
 public:
  Server(const WorkerOptions& options, ReadyHandler on_ready)
      : options_(options), on_ready_(std::move(on_ready)), instance_id_(RandomId()) {}

  ~Server() override { Shutdown(); }

  Status Start();
  void Shutdown() override;

 private:
  Status LoadModel(const model::GgufFile& gguf);
  Status StartEngine();
  Status StartListeners();
  void StartRegistrars();
  v1::RegisterRequest Registration() const;
  void FillReport(v1::ReportRequest& report) const;
  Status Readiness() const;
  bool draining() const;
  void OnRegistered();
  void Drain();

  const WorkerOptions options_;
  const ReadyHandler on_ready_;
  const uint64_t instance_id_;

  bool shut_down_ = false;
  enum class Phase { kStarting, kReady, kDraining };
  mutable Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kStarting;

  Metrics metrics_;
  WorkerModel model_;
  v1::GetModelInfoResponse info_;
  // In the order in which each uses the ones before it; destroyed the other way round.
  std::unique_ptr<CpuBackend> backend_;
  std::unique_ptr<rpc::RemoteBlockStore> store_;
  std::unique_ptr<BreakerStore> breaker_;
  std::unique_ptr<KvTransfer> transfer_;
  std::unique_ptr<EngineMetrics> engine_metrics_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<GenerateService> service_;
  std::unique_ptr<rpc::Server> grpc_;
  std::unique_ptr<http::HttpServer> http_;
  std::vector<std::unique_ptr<Registrar>> registrars_;
};

Status Server::Start() {
  metrics_.AddProcessMetrics("worker", kVersion);
  // Its errors name the file.
  PAGODA_ASSIGN_OR_RETURN(model::GgufFile gguf, model::GgufFile::Open(options_.model));
  PAGODA_RETURN_IF_ERROR(Annotate(LoadModel(gguf), options_.model));
  PAGODA_RETURN_IF_ERROR(StartEngine());
  PAGODA_RETURN_IF_ERROR(StartListeners());
  if (options_.routers.empty()) {
    OnRegistered();
  } else {
    StartRegistrars();
  }
  return absl::OkStatus();
}

Status Server::LoadModel(const model::GgufFile& gguf) {
  PAGODA_ASSIGN_OR_RETURN(text::TokenizerSpec spec, text::ReadTokenizerSpec(gguf));
  PAGODA_ASSIGN_OR_RETURN(auto text_model, text::TextModel::Make(spec));
  PAGODA_ASSIGN_OR_RETURN(backend_, CpuBackend::Load(gguf, options_));

  model_.space = MakeSpace(backend_->space_fields());
  model_.weight_epoch = options_.weight_epoch;
  model_.stop_ids = text_model->stop_ids();

  if (options_.served_model_names.empty()) {
    info_.add_served_names(std::filesystem::path(options_.model).stem().string());
  }
  for (const std::string& name : options_.served_model_names) info_.add_served_names(name);
  info_.set_max_model_len(backend_->max_model_len());
  info_.set_vocabulary_size(backend_->config().vocabulary);
  info_.set_text_digest(std::string(AsBytes(text_model->digest())));
  info_.set_text_model(text_model->serialized());
  info_.set_space(std::string(model_.space.view()));
  return absl::OkStatus();
}

Status Server::StartEngine() {
  if (!options_.kvstore.empty()) {
    store_ = std::make_unique<rpc::RemoteBlockStore>(
        rpc::RemoteBlockStore::Options{.address = options_.kvstore, .metrics = &metrics_});
    breaker_ =
        std::make_unique<BreakerStore>(store_.get(), BreakerStore::Options{.metrics = &metrics_});
    KvTransfer::Options transfer{.load = options_.kv_load != "recompute",
                                 .push = options_.kv_offload == "write_through",
                                 .space = model_.space,
                                 .weight_epoch = options_.weight_epoch,
                                 .producer_instance = instance_id_,
                                 .producer_build = kVersion,
                                 .block_tokens = static_cast<uint32_t>(backend_->block_tokens()),
                                 .breaker = breaker_.get()};
    PAGODA_ASSIGN_OR_RETURN(transfer_, KvTransfer::Make(transfer, breaker_.get(), &backend_->pool(),
                                                        &metrics_, SystemClock::Get()));
  }
  Engine::Options engine;
  engine.vocabulary_size = static_cast<uint32_t>(backend_->config().vocabulary);
  engine.max_model_len = backend_->max_model_len();
  engine.num_blocks = backend_->num_blocks();
  engine.scheduler.block_tokens = backend_->block_tokens();
  engine.scheduler.max_num_batched_tokens = options_.max_num_batched_tokens;
  engine.scheduler.max_num_seqs = options_.max_num_seqs;
  engine.scheduler.enable_chunked_prefill = options_.enable_chunked_prefill;
  engine.prefill_tokens_per_second = backend_->prefill_rate();
  engine.recheck = {.one_in = static_cast<uint32_t>(options_.kv_recheck_one_in),
                    .seed = RandomId()};
  if (options_.kv_load == "load") engine.store_patience = StorePatience::Insisting();
  engine.poison_freed_blocks = options_.poison_freed_blocks;
  engine_metrics_ = std::make_unique<EngineMetrics>(&metrics_);
  engine_ = std::make_unique<Engine>(engine, &backend_->runner(), &backend_->pool(),
                                     transfer_.get(), engine_metrics_.get(), SystemClock::Get());
  engine_->Start();
  return absl::OkStatus();
}

Status Server::StartListeners() {
  service_ = std::make_unique<GenerateService>(engine_.get(), model_, info_);
  // Prompts of a whole context are small beside this; it is gRPC's own default.
  constexpr int kMaxRequestBytes = 4 << 20;
  PAGODA_ASSIGN_OR_RETURN(grpc_, rpc::Server::Start({.address = options_.grpc_address,
                                                     .services = {service_.get()},
                                                     .max_receive_bytes = kMaxRequestBytes}));
  http::HttpRoutes routes;
  http::AddServiceEndpoints(routes, {.ready = [this] { return Readiness(); },
                                     .metrics = [this] { return metrics_.Render(); }});
  PAGODA_ASSIGN_OR_RETURN(
      http_, http::HttpServer::Start({.address = options_.http_address, .metrics = &metrics_},
                                     std::move(routes)));
  return absl::OkStatus();
}

void Server::StartRegistrars() {
  for (const std::string& router : options_.routers) {
    registrars_.push_back(std::make_unique<Registrar>(
        Registrar::Options{.router_address = router,
                           .registration = Registration(),
                           .fill_report = [this](v1::ReportRequest& report) { FillReport(report); },
                           .on_registered = [this] { OnRegistered(); }}));
  }
}

v1::RegisterRequest Server::Registration() const {
  v1::RegisterRequest request;
  request.set_name(options_.name);
  request.set_instance_id(instance_id_);
  request.set_grpc_address(grpc_->address());
  request.set_http_address(http_->address());
  request.set_pid(static_cast<uint64_t>(getpid()));
  request.set_version(kVersion);
  request.mutable_protocol()->set_min(kProtocolMin);
  request.mutable_protocol()->set_max(kProtocolMax);
  *request.mutable_space() = ToProto(backend_->space_fields());
  request.set_weight_epoch(options_.weight_epoch);
  v1::WorkerLimits& limits = *request.mutable_limits();
  limits.set_max_model_len(backend_->max_model_len());
  limits.set_max_num_seqs(options_.max_num_seqs);
  limits.set_max_num_batched_tokens(options_.max_num_batched_tokens);
  limits.set_total_blocks(backend_->num_blocks());
  limits.set_block_bytes(backend_->pool().block_bytes());
  limits.set_vocabulary_size(backend_->config().vocabulary);
  request.set_text_digest(info_.text_digest());
  *request.mutable_served_names() = info_.served_names();
  return request;
}

void Server::FillReport(v1::ReportRequest& report) const {
  const EngineStats stats = engine_->stats();
  report.set_step_counter(stats.steps);
  report.set_draining(draining());
  report.set_running(stats.running);
  report.set_waiting(stats.waiting);
  report.set_waiting_prefill_tokens(stats.pending_prefill_tokens);
  report.set_free_blocks(stats.free_blocks);
  report.set_total_blocks(stats.total_blocks);
  report.set_prefill_tokens_per_second(stats.prefill_tokens_per_second);
}

Status Server::Readiness() const {
  MutexLock lock(mutex_);
  if (phase_ == Phase::kReady) return absl::OkStatus();
  return absl::UnavailableError(phase_ == Phase::kDraining ? "draining"
                                                           : "not registered at a router yet");
}

bool Server::draining() const {
  MutexLock lock(mutex_);
  return phase_ == Phase::kDraining;
}

void Server::OnRegistered() {
  {
    MutexLock lock(mutex_);
    if (phase_ != Phase::kStarting) return;
    phase_ = Phase::kReady;
    grpc_->SetReady(true);
  }
  on_ready_(grpc_->address(), http_->address());
}

void Server::Drain() {
  bool was_ready;
  {
    MutexLock lock(mutex_);
    was_ready = phase_ == Phase::kReady;
    phase_ = Phase::kDraining;
    grpc_->SetReady(false);
  }
  for (auto& registrar : registrars_) registrar->ReportSoon();
  Log(LogLevel::kInfo, "draining", {{"running", engine_->stats().running}});
  const Clock* clock = SystemClock::Get();
  // Nobody sends to a worker that never was ready.
  if (was_ready) std::this_thread::sleep_for(std::chrono::seconds(options_.drain_delay_s));
  engine_->Drain();
  TimePoint deadline = clock->Now() + std::chrono::seconds(options_.drain_timeout_s);
  if (!engine_->WaitUntilIdle(deadline)) {
    Log(LogLevel::kInfo, "the rest is left to other workers",
        {{"running", engine_->stats().running}, {"waiting", engine_->stats().waiting}});
  }
}

void Server::Shutdown() {
  if (std::exchange(shut_down_, true)) return;
  if (http_ != nullptr) Drain();  // it was started last
  if (engine_ != nullptr) engine_->Stop(kPushGrace);
  if (transfer_ != nullptr) transfer_->Stop();
  // The engine has ended every request, so only the last messages are still on their way.
  if (grpc_ != nullptr) grpc_->Shutdown(std::chrono::seconds(1));
  // Only now: a router takes the end of the reports for the end of the worker.
  registrars_.clear();
  if (http_ != nullptr) http_->Stop();
}

}  // namespace

StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Start(const WorkerOptions& options,
                                                            ReadyHandler on_ready) {
  auto server = std::make_unique<Server>(options, std::move(on_ready));
  PAGODA_RETURN_IF_ERROR(server->Start());
  return StatusOr<std::unique_ptr<WorkerServer>>(std::move(server));
}

}  // namespace pagoda::worker
