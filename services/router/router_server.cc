#include "services/router/router_server.h"

#include <grpcpp/impl/service_type.h>

#include <atomic>
#include <chrono>
#include <utility>

#include "common/base/executor.h"
#include "common/base/logging.h"
#include "common/base/random.h"
#include "common/base/version.h"
#include "common/http/http_server.h"
#include "common/http/service_endpoints.h"
#include "common/placement/placement.h"
#include "common/rpc/server.h"
#include "services/router/control_service.h"
#include "services/router/health_monitor.h"
#include "services/router/inference_service.h"
#include "services/router/openai/openai_routes.h"
#include "services/router/router_core.h"

namespace pagoda::router {
namespace {

// HTTP threads only move bytes; text threads tokenise, so a long prompt holds up one of them.
constexpr int kHttpThreads = 2;
constexpr int kTextThreads = 2;
// New requests that wait for a text thread: a second of work at a few milliseconds each.
constexpr size_t kTextQueueLimit = 256;
// Cancelled calls end within a step; neither a worker that hangs nor a client that does not read
// must hold up the router's end.
constexpr Duration kStopGrace = std::chrono::seconds(2);
// gRPC's own default. Far more than any context holds, and a hostile message (millions of empty
// chat messages) takes thirty times its size in memory once it is parsed.
constexpr int kMaxGrpcRequestBytes = 4 << 20;

class Router final : public RouterServer {
 public:
  Router(std::shared_ptr<const ServedModel> model,
         std::unique_ptr<placement::PlacementPolicy> policy, const Options& options)
      : placement_(std::move(policy), SystemClock::Get()),
        killers_(SystemClock::Get()),
        registry_({.router_id = RandomId(), .health = options.health}, model, &placement_,
                  &killers_, SystemClock::Get()),
        router_metrics_(&metrics_),
        executor_({.name = "text", .threads = kTextThreads, .queue_limit = kTextQueueLimit}) {
    core_.model = std::move(model);
    core_.placement = &placement_;
    core_.workers = &registry_;
    core_.metrics = &router_metrics_;
    core_.text_executor = &executor_;
    core_.active = &active_;
    core_.grpc_calls = &grpc_calls_;
    core_.killers = &killers_;
    core_.limits = options.limits;
    core_.allow_placement_override = options.allow_placement_override;
    control_ = MakeControlService(&registry_);
    inference_ = MakeInferenceService(&core_);
    metrics_.AddProcessMetrics("router", kVersion);
  }

  ~Router() override { Stop(); }

  Status Listen(const Options& options) {
    http::HttpRoutes routes;
    openai::AddOpenAiRoutes(routes, &core_);
    http::AddServiceEndpoints(
        routes,
        {.ready =
             [this] { return ready_ ? absl::OkStatus() : absl::UnavailableError("not ready"); },
         .metrics = [this] { return metrics_.Render(); }});
    PAGODA_ASSIGN_OR_RETURN(
        http_, http::HttpServer::Start(
                   {.address = options.http_address, .threads = kHttpThreads, .metrics = &metrics_},
                   std::move(routes)));
    PAGODA_ASSIGN_OR_RETURN(grpc_,
                            rpc::Server::Start({.address = options.grpc_address,
                                                .services = {control_.get(), inference_.get()},
                                                .max_receive_bytes = kMaxGrpcRequestBytes}));
    monitor_.Start();
    ready_ = true;
    grpc_->SetReady(true);
    Log(LogLevel::kInfo, "router ready",
        {{"grpc", grpc_->address()},
         {"http", http_->address()},
         {"model", core_.model->names().front()}});
    return absl::OkStatus();
  }

  std::string grpc_address() const override { return grpc_->address(); }
  std::string http_address() const override { return http_->address(); }

  // Order: who runs hears why; then who waits for a text thread, and who comes late; then the
  // threads that work could have used.
  void Stop() override {
    ready_ = false;
    if (grpc_ != nullptr) grpc_->SetReady(false);
    active_.CancelAll();
    active_.WaitUntilEmpty(SystemClock::Get()->Now() + kStopGrace);
    executor_.Stop();
    monitor_.Stop();
    if (http_ != nullptr) http_->Stop();
    // A grace for the server would be used up by the workers' report streams.
    grpc_calls_.WaitUntilNone(SystemClock::Get()->Now() + kStopGrace);
    if (grpc_ != nullptr) grpc_->Shutdown(Duration::zero());
  }

 private:
  Metrics metrics_;
  placement::Placement placement_;
  KillerTable killers_;
  WorkerRegistry registry_;
  RouterMetrics router_metrics_;
  ActiveGenerations active_;
  OpenCalls grpc_calls_;
  Executor executor_;
  RouterCore core_{.clock = SystemClock::Get()};
  HealthMonitor monitor_{&core_};
  std::unique_ptr<grpc::Service> control_;
  std::unique_ptr<grpc::Service> inference_;
  std::atomic<bool> ready_ = false;
  std::unique_ptr<http::HttpServer> http_;
  std::unique_ptr<rpc::Server> grpc_;
};

}  // namespace

StatusOr<std::unique_ptr<RouterServer>> RouterServer::Start(const Options& options) {
  if (options.model.empty()) return absl::InvalidArgumentError("--model is required");
  PAGODA_ASSIGN_OR_RETURN(auto policy, placement::MakePolicy(options.policy, RandomId()));
  auto now = std::chrono::duration_cast<std::chrono::seconds>(SystemClock::Get()->WallTime());
  PAGODA_ASSIGN_OR_RETURN(auto model,
                          ServedModel::Load(options.model, options.served_names, now.count()));
  auto router = std::make_unique<Router>(std::move(model), std::move(policy), options);
  PAGODA_RETURN_IF_ERROR(router->Listen(options));
  return router;
}

}  // namespace pagoda::router
