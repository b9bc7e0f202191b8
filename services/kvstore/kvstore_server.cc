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
#include "services/kvstore/data_dir.h"
#include "services/kvstore/disk_tier.h"
#include "services/kvstore/kvstore_service.h"
#include "services/kvstore/ram_tier.h"
#include "services/kvstore/tiered_store.h"

namespace pagoda::kvstore {
namespace {

// A client's streams on its bulk connection; more wait at the client.
constexpr int kMaxConcurrentStreams = 16;

// What the store may come to take: the slab, the indexes, RocksDB's buffers, blocks that are
// spilled, and received messages of one connection.
// Above nine tenths of what the process may use, the kernel would end it under load rather than
// refuse it now.
Status CheckMemory(const KvStoreServer::Options& options) {
  uint64_t ram_bytes = options.ram_bytes;
  uint64_t index = ram_bytes / RamTier::kMinBytesPerBlock * RamTier::kIndexBytesPerBlock;
  uint64_t messages = uint64_t{kMaxConcurrentStreams} * options.streams.put_credit_bytes;
  uint64_t disk = 0;
  if (!options.data_dir.empty()) {
    disk = options.disk_bytes / BlockDb::kMinBytesPerBlock * BlockDb::kIndexBytesPerBlock +
           BlockDb::MemoryBytes(options.disk_bytes) + Spill::kMaxBytes;
  }
  uint64_t usable = UsableMemoryBytes();
  Log(LogLevel::kInfo, "memory",
      {{"slab", FormatBytes(ram_bytes)},
       {"index_at_most", FormatBytes(index)},
       {"disk_tier", FormatBytes(disk)},
       {"messages", FormatBytes(messages)},
       {"usable", FormatBytes(usable)}});
  if (ram_bytes <= usable && ram_bytes + index + disk + messages <= usable / 10 * 9) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(FormatBytes(ram_bytes) + " with its index (" +
                                      FormatBytes(index) + "), the disk tier's memory (" +
                                      FormatBytes(disk) + ") and messages (" +
                                      FormatBytes(messages) + ") is over 90 % of the " +
                                      FormatBytes(usable) + " that this process may use");
}

}  // namespace

// In the order in which they need each other; destroyed from the last to the first.
struct KvStoreServer::Parts {
  explicit Parts(const StreamLimits& given) : limits(given) {}

  Metrics metrics;
  std::unique_ptr<DataDir> data_dir;  // null: RAM only
  std::unique_ptr<TieredStore> tiered;
  std::unique_ptr<RamTier> ram_only;
  StoreMetrics store_metrics{metrics};
  StreamWatch watch{SystemClock::Get()};
  const StreamLimits limits;
  ConnectionBudgets budgets{limits.inflight_bytes, watch.Waker()};
  std::unique_ptr<StreamContext> context;
  std::unique_ptr<KvStoreService> service;
  std::unique_ptr<KvAdminService> admin;
  std::unique_ptr<rpc::Server> grpc;
  std::unique_ptr<http::HttpServer> http;
  std::atomic<bool> ready{false};

  Status OpenTiers(const Options& options);
  // Null, with a log line, when the disk is of no use.
  StatusOr<std::unique_ptr<DiskTier>> OpenDisk(const Options& options);
  ReservingStore& Store() {
    return tiered != nullptr ? static_cast<ReservingStore&>(*tiered) : *ram_only;
  }
  BlockStoreAdmin& Admin() {
    return tiered != nullptr ? static_cast<BlockStoreAdmin&>(*tiered) : *ram_only;
  }
  std::string ShardId(const Options& options) const {
    if (!options.shard_id.empty()) return options.shard_id;
    return data_dir != nullptr ? data_dir->shard_id() : RandomHex128();
  }

  Mutex mutex;
  CondVar changed;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  bool stopped ABSL_GUARDED_BY(mutex) = false;
};

Status KvStoreServer::Parts::OpenTiers(const Options& options) {
  RamTier::Options ram = {.bytes = options.ram_bytes, .policy = nullptr, .metrics = &metrics};
  std::unique_ptr<DiskTier> disk;
  if (!options.data_dir.empty()) {
    if (options.disk_bytes == 0) return absl::InvalidArgumentError("--disk-bytes: 0, at least 1");
    auto opened = DataDir::Open(options.data_dir);
    if (!opened.ok()) return Annotate(opened.status(), "--data-dir");
    data_dir = *std::move(opened);
    PAGODA_ASSIGN_OR_RETURN(disk, OpenDisk(options));
  }
  if (disk == nullptr) {
    auto tier = RamTier::Create(std::move(ram));
    if (!tier.ok()) return Annotate(tier.status(), "--ram-bytes");
    ram_only = *std::move(tier);
    return absl::OkStatus();
  }
  auto store = TieredStore::Create(std::move(ram), std::move(disk));
  if (!store.ok()) return Annotate(store.status(), "--ram-bytes");
  tiered = *std::move(store);
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<DiskTier>> KvStoreServer::Parts::OpenDisk(const Options& options) {
  DiskMetrics counts(metrics);
  DiskTier::Options disk;
  disk.db = {
      .folder = data_dir->version_folder(), .bytes = options.disk_bytes, .metrics = &metrics};
  auto tier = DiskTier::Open(disk);
  if (absl::IsDataLoss(tier.status())) {
    Log(LogLevel::kError, "the blocks on disk cannot be read", {{"status", tier.status()}});
    data_dir->DiscardVersion();
    tier = DiskTier::Open(disk);
  }
  counts.discarded.Increment(data_dir->discarded());
  if (tier.ok()) return tier;
  counts.up.Set(0);
  Log(LogLevel::kError, "the disk is of no use, RAM goes on alone", {{"status", tier.status()}});
  return std::unique_ptr<DiskTier>();
}

StatusOr<std::unique_ptr<KvStoreServer>> KvStoreServer::Start(const Options& options) {
  auto parts = std::make_unique<Parts>(options.streams);
  parts->metrics.AddProcessMetrics("kvstore", kVersion);
  PAGODA_RETURN_IF_ERROR(Annotate(CheckMemory(options), "--ram-bytes"));
  PAGODA_RETURN_IF_ERROR(parts->OpenTiers(options));
  ReservingStore& store = parts->Store();
  parts->context = std::make_unique<StreamContext>(
      StreamContext{store, parts->store_metrics, parts->watch, parts->budgets, *SystemClock::Get(),
                    parts->limits});
  KvStoreService::Identity identity{parts->ShardId(options), RandomId()};
  std::string shard_id = identity.shard_id;
  parts->service = std::make_unique<KvStoreService>(*parts->context, std::move(identity));
  parts->admin = std::make_unique<KvAdminService>(parts->Admin(), *SystemClock::Get());

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
       {"ram", FormatBytes(options.ram_bytes)},
       {"disk", parts->tiered == nullptr ? "none" : FormatBytes(options.disk_bytes)}});
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
  if (parts_->tiered != nullptr) {
    parts_->tiered->SpillAll(SystemClock::Get()->Now() + kSpillLimit);
  }
  MutexLock lock(parts_->mutex);
  parts_->stopped = true;
  parts_->changed.SignalAll();
}

void KvStoreServer::Wait() {
  MutexLock lock(parts_->mutex);
  while (!parts_->stopped) parts_->changed.Wait(parts_->mutex);
}

}  // namespace pagoda::kvstore
