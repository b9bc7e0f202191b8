#include "services/kvstore/kvstore_server.h"

#include <atomic>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/logging.h"
#include "common/base/memory_limit.h"
#include "common/base/metrics.h"
#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/base/version.h"
#include "common/http/http_server.h"
#include "common/http/service_endpoints.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "services/kvstore/kvstore_service.h"
#include "services/kvstore/ram_tier.h"

namespace pagoda::kvstore {
namespace {

// A client's streams on its bulk connection; more wait at the client.
constexpr int kMaxConcurrentStreams = 16;

// What the store may come to take: the slab, its index, and received messages of one connection.
// Above nine tenths of what the process may use, the kernel would end it under load rather than
// refuse it now.
Status CheckMemory(uint64_t ram_bytes) {
  uint64_t index = ram_bytes / RamTier::kMinBytesPerBlock * RamTier::kIndexBytesPerBlock;
  uint64_t messages = uint64_t{kMaxConcurrentStreams} * StreamLimits{}.put_credit_bytes;
  uint64_t usable = UsableMemoryBytes();
  Log(LogLevel::kInfo, "memory",
      {{"slab", FormatBytes(ram_bytes)},
       {"index_at_most", FormatBytes(index)},
       {"messages", FormatBytes(messages)},
       {"usable", FormatBytes(usable)}});
  if (ram_bytes <= usable && ram_bytes + index + messages <= usable / 10 * 9) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(FormatBytes(ram_bytes) + " with its index (" +
                                      FormatBytes(index) + ") and messages (" +
                                      FormatBytes(messages) + ") is over 90 % of the " +
                                      FormatBytes(usable) + " that this process may use");
}

}  // namespace

// In the order in which they need each other; destroyed from the last to the first.
struct KvStoreServer::Parts {
  Metrics metrics;
  std::unique_ptr<RamTier> tier;
  StoreMetrics store_metrics{metrics};
  StreamWatch watch{SystemClock::Get()};
  StreamLimits limits;
  ConnectionBudgets budgets{limits.inflight_bytes, watch.Waker()};
  std::unique_ptr<StreamContext> context;
  std::unique_ptr<KvStoreService> service;
  std::unique_ptr<KvAdminService> admin;
  std::unique_ptr<rpc::Server> grpc;
  std::unique_ptr<http::HttpServer> http;
  std::atomic<bool> ready{false};

  Mutex mutex;
  CondVar changed;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  bool stopped ABSL_GUARDED_BY(mutex) = false;
};

StatusOr<std::unique_ptr<KvStoreServer>> KvStoreServer::Start(const Options& options) {
  auto parts = std::make_unique<Parts>();
  parts->metrics.AddProcessMetrics("kvstore", kVersion);
  PAGODA_RETURN_IF_ERROR(Annotate(CheckMemory(options.ram_bytes), "ram_bytes"));
  auto tier =
      RamTier::Create({.bytes = options.ram_bytes, .policy = nullptr, .metrics = &parts->metrics});
  if (!tier.ok()) return Annotate(tier.status(), "ram_bytes");
  parts->tier = *std::move(tier);
  parts->context = std::make_unique<StreamContext>(
      StreamContext{*parts->tier, parts->store_metrics, parts->watch, parts->budgets,
                    *SystemClock::Get(), parts->limits});
  KvStoreService::Identity identity{options.shard_id.empty() ? RandomHex128() : options.shard_id,
                                    RandomId()};
  std::string shard_id = identity.shard_id;
  parts->service = std::make_unique<KvStoreService>(*parts->context, std::move(identity));
  parts->admin = std::make_unique<KvAdminService>(*parts->tier, *SystemClock::Get());

  auto grpc = rpc::Server::Start({.address = options.grpc_address,
                                  .services = {parts->service.get(), parts->admin.get()},
                                  .max_receive_bytes = rpc::kMaxMessageBytes,
                                  .max_concurrent_streams = kMaxConcurrentStreams});
  if (!grpc.ok()) return Annotate(grpc.status(), "grpc_address");
  parts->grpc = *std::move(grpc);

  http::HttpRoutes routes;
  Parts* raw = parts.get();
  http::AddServiceEndpoints(
      routes,
      {.ready =
           [raw] { return raw->ready ? absl::OkStatus() : absl::UnavailableError("stopping"); },
       .metrics = [raw] { return raw->metrics.Render(); }});
  http::HttpServer::Options http_options;
  http_options.address = options.http_address;
  http_options.metrics = &parts->metrics;
  auto http = http::HttpServer::Start(http_options, std::move(routes));
  if (!http.ok()) return Annotate(http.status(), "http_address");
  parts->http = *std::move(http);

  parts->ready = true;
  parts->grpc->SetReady(true);
  Log(LogLevel::kInfo, "ready",
      {{"grpc", parts->grpc->address()},
       {"http", parts->http->address()},
       {"shard_id", shard_id},
       {"ram", FormatBytes(options.ram_bytes)}});
  return std::unique_ptr<KvStoreServer>(new KvStoreServer(std::move(parts)));
}

KvStoreServer::KvStoreServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

KvStoreServer::~KvStoreServer() { Shutdown(Duration::zero()); }

std::string KvStoreServer::grpc_address() const { return parts_->grpc->address(); }
std::string KvStoreServer::http_address() const { return parts_->http->address(); }

void KvStoreServer::Shutdown(Duration grace) {
  {
    MutexLock lock(parts_->mutex);
    if (std::exchange(parts_->stopping, true)) return;
  }
  parts_->ready = false;
  parts_->grpc->SetReady(false);
  parts_->grpc->Shutdown(grace);
  parts_->http->Stop();
  MutexLock lock(parts_->mutex);
  parts_->stopped = true;
  parts_->changed.SignalAll();
}

void KvStoreServer::Wait() {
  MutexLock lock(parts_->mutex);
  while (!parts_->stopped) parts_->changed.Wait(parts_->mutex);
}

}  // namespace pagoda::kvstore
