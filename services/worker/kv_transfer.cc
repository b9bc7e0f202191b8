#include "services/worker/kv_transfer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/crc32c.h"
#include "common/base/logging.h"

namespace pagoda::worker {
namespace {

// The trace id of a W3C traceparent, "version-traceid-parent-flags"; empty when there is none.
std::string TraceId(const std::string& traceparent) {
  return traceparent.size() >= 35 ? traceparent.substr(3, 32) : std::string();
}

// Two workers that diverge do so for every block: a line a minute says as much as thousands.
constexpr Duration kDivergentLogInterval = std::chrono::seconds(60);

// Of a key's hex digits, enough to find it in other logs.
constexpr size_t kLoggedKeyDigits = 16;

// A caller who gives a call up when its deadline passes may be faster than the store's own answer.
bool MissedDeadline(const Status& status, TimePoint deadline, TimePoint now) {
  return absl::IsDeadlineExceeded(status) || (absl::IsCancelled(status) && now >= deadline);
}

}  // namespace

KvTransferMetrics::KvTransferMetrics(Metrics* metrics) {
  auto load = [&](const char* result) {
    return &metrics->Counter("kv_load_blocks_total", "blocks asked of the store, by result",
                             {{"result", result}});
  };
  auto push = [&](const char* result) {
    return &metrics->Counter("kv_push_blocks_total", "computed blocks for the store, by result",
                             {{"result", result}});
  };
  load_ = {load("loaded"), load("missing"), load("corrupt"), load("refused"), load("failed")};
  push_ = {push("stored"),  push("have"),    push("divergent"),
           push("no_room"), push("corrupt"), push("failed")};
  push_dropped_ = push("dropped");
  auto missed = [&](const char* call) {
    return &metrics->Counter("kv_deadline_misses_total",
                             "calls to the KV store that were not answered in time",
                             {{"call", call}});
  };
  lookup_missed_ = missed("lookup");
  load_missed_ = missed("load");
  push_missed_ = missed("push");
  push_pending_ = &metrics->Gauge("kv_push_pending_blocks", "blocks copied and not yet answered");
}

// Takes the blocks of one load into the pool.
class KvTransfer::Sink final : public BlockSink {
 public:
  Sink(KvTransfer* transfer, LoadId load, std::vector<LoadBlock> blocks, TimePoint deadline)
      : transfer_(transfer),
        load_(load),
        blocks_(std::move(blocks)),
        deadline_(deadline),
        producers_(blocks_.size()) {}

  StatusOr<Destination> Begin(size_t index, const RecordHeader& header) override {
    const LoadBlock& block = blocks_[index];
    producers_[index] = header.producer_instance;
    if (transfer_->refused_.HasKey(block.ref.key) ||
        transfer_->refused_.HasProducer(header.producer_instance)) {
      return absl::FailedPreconditionError("this block, or its producer, was found wrong before");
    }
    std::span<std::byte> memory = transfer_->memory_->Bytes(block.block);
    Status status = CheckExpected(header, {block.ref, transfer_->options_.space, block.name_space});
    if (status.ok() && header.payload_bytes != memory.size()) {
      status = absl::FailedPreconditionError(
          "payload_bytes: " + std::to_string(header.payload_bytes) +
          ", this worker's blocks have " + std::to_string(memory.size()));
    }
    if (status.ok()) return Destination::Memory(memory.data());
    // No honest store holds such a block under this key.
    transfer_->store_->ReportCorrupt(
        {block.ref.key, header.producer_instance, std::string(status.message())});
    return status;
  }

  void Done(size_t index, GetResult result) override {
    transfer_->metrics_.Load(result.outcome).Increment();
    late_ |= MissedDeadline(result.status, deadline_, transfer_->clock_->Now());
    transfer_->on_event_(
        BlockLoaded{.load = load_,
                    .entry = static_cast<int32_t>(index),
                    .ok = result.outcome == GetOutcome::kFound,
                    .source = result.tier == Tier::kDisk ? BlockSource::kDisk : BlockSource::kRam,
                    .producer = producers_[index]});
  }

  void Finished() override {
    if (late_) transfer_->metrics_.LoadMissedDeadline().Increment();
    transfer_->LoadEnded(load_);
  }

 private:
  KvTransfer* const transfer_;
  const LoadId load_;
  const std::vector<LoadBlock> blocks_;
  const TimePoint deadline_;
  bool late_ = false;
  std::vector<uint64_t> producers_;  // [entry] as the headers name them
};

StatusOr<std::unique_ptr<KvTransfer>> KvTransfer::Make(const Options& options, BlockStore* store,
                                                       BlockMemory* memory, Metrics* metrics,
                                                       Clock* clock) {
  if (memory->block_bytes() > kMaxPayloadBytes) {
    return absl::InvalidArgumentError("a KV block has " + std::to_string(memory->block_bytes()) +
                                      " bytes, a store takes at most " +
                                      std::to_string(kMaxPayloadBytes) +
                                      ": use a smaller --block-size");
  }
  return std::unique_ptr<KvTransfer>(new KvTransfer(options, store, memory, metrics, clock));
}

KvTransfer::KvTransfer(const Options& options, BlockStore* store, BlockMemory* memory,
                       Metrics* metrics, Clock* clock)
    : options_(options),
      store_(store),
      memory_(memory),
      clock_(clock),
      metrics_(metrics),
      staging_(memory->block_bytes(), options.max_staging_bytes),
      on_event_([](TransferEvent) {}),
      caller_({.name = "kv-transfer", .threads = 1, .queue_limit = options.max_queued_calls}) {}

KvTransfer::~KvTransfer() { Stop(); }

void KvTransfer::SetEventHandler(EventHandler handler) { on_event_ = std::move(handler); }

CallContext KvTransfer::ContextFor(const GenerationRequest& request, TimePoint deadline) const {
  return {.deadline = deadline,
          .tenant = request.cache.tenant,
          .priority = request.priority,
          .cancel = stop_.get_token(),
          .trace_id = TraceId(request.traceparent)};
}

bool KvTransfer::TryCall(std::function<void()> call) {
  {
    MutexLock lock(mutex_);
    ++open_calls_;
  }
  if (caller_.TryRun(std::move(call))) return true;
  CallEnded();
  return false;
}

void KvTransfer::CallEnded() {
  MutexLock lock(mutex_);
  if (--open_calls_ == 0) none_open_.SignalAll();
}

bool KvTransfer::StoreAnswers() {
  if (options_.breaker == nullptr || options_.breaker->closed()) return true;
  (void)TryCall(
      [this] { store_->FindMissing({}, {}, [this](const FindResult&) { CallEnded(); }); });
  return false;
}

void KvTransfer::Lookup(SequenceId sequence, const GenerationRequest& request,
                        std::vector<BlockRef> refs, int32_t first_index, TimePoint deadline) {
  refs.resize(std::min(refs.size(), kMaxBlocksPerCall));
  auto answer = [this, sequence, first_index, deadline](const FindResult& result) {
    if (MissedDeadline(result.status, deadline, clock_->Now())) {
      metrics_.LookupMissedDeadline().Increment();
    }
    LookupDone done{.sequence = sequence, .held = std::vector<bool>(first_index, false)};
    for (const Held& held : result.blocks) done.held.push_back(static_cast<bool>(held));
    on_event_(std::move(done));
    CallEnded();
  };
  CallContext context = ContextFor(request, deadline);
  if (!TryCall([this, context, refs = std::move(refs), answer] {
        store_->FindMissing(context, refs, answer);
      })) {
    on_event_(LookupDone{.sequence = sequence, .held = {}});
  }
}

void KvTransfer::Load(LoadId load, const GenerationRequest& request, std::vector<LoadBlock> blocks,
                      TimePoint deadline) {
  CallContext context = ContextFor(request, deadline);
  {
    MutexLock lock(mutex_);
    context.cancel = loads_[load].get_token();
  }
  std::vector<BlockRef> refs;
  for (const LoadBlock& block : blocks) refs.push_back(block.ref);
  auto sink = std::make_shared<Sink>(this, load, std::move(blocks), deadline);
  size_t count = refs.size();
  if (!TryCall(
          [this, context, refs = std::move(refs), sink] { store_->Get(context, refs, sink); })) {
    {
      MutexLock lock(mutex_);
      ++open_calls_;  // Finished ends it
    }
    FailGet(absl::ResourceExhaustedError("too many calls wait for the store"), count, *sink);
  }
}

void KvTransfer::LoadEnded(LoadId load) {
  {
    MutexLock lock(mutex_);
    loads_.erase(load);
  }
  CallEnded();
}

void KvTransfer::CancelLoad(LoadId load) {
  std::stop_source source{std::nostopstate};
  {
    MutexLock lock(mutex_);
    auto it = loads_.find(load);
    if (it == loads_.end()) return;
    source = it->second;
  }
  source.request_stop();  // without the lock: it runs the store's own reaction
}

PutBlock KvTransfer::MakePut(const GenerationRequest& request, const PushBlock& block,
                             std::shared_ptr<std::byte> staged) {
  std::span<const std::byte> bytes = memory_->Bytes(block.block);
  PutBlock put;
  put.header = {.ref = block.ref,
                .space = options_.space,
                .name_space = block.name_space,
                .token_count = options_.block_tokens,
                .payload_bytes = bytes.size(),
                .payload_crc = CopyWithCrc32c(staged.get(), bytes.data(), bytes.size()),
                .producer_instance = options_.producer_instance,
                .producer_build = options_.producer_build,
                .created_unix_ns = clock_->WallTime().count()};
  put.meta = {.owner_tenant = request.cache.tenant,
              .tenant_generation = request.cache.tenant_generation,
              .weight_epoch = options_.weight_epoch,
              .priority = request.priority};
  put.payload = {.data = staged.get(), .size = bytes.size(), .owner = staged};
  return put;
}

void KvTransfer::Push(const GenerationRequest& request, const std::vector<PushBlock>& blocks,
                      Acknowledged acknowledged) {
  if (!StoreAnswers()) {
    return metrics_.PushDropped().Increment(static_cast<double>(blocks.size()));
  }
  std::vector<PutBlock> puts;
  for (const PushBlock& block : blocks) {
    std::shared_ptr<std::byte> staged = staging_.TryTake();
    if (staged == nullptr) break;
    puts.push_back(MakePut(request, block, std::move(staged)));
  }
  const size_t count = puts.size();
  metrics_.PushDropped().Increment(static_cast<double>(blocks.size() - count));
  if (count == 0) return;
  metrics_.PushPending().Increment(static_cast<double>(count));
  const TimePoint deadline = clock_->Now() + options_.put_timeout;
  // std::function copies its closure; the blocks are moved out by the one call.
  auto shared = std::make_shared<std::vector<PutBlock>>(std::move(puts));
  std::vector<BlockKey> keys;
  for (const PutBlock& put : *shared) keys.push_back(put.header.ref.key);
  auto answer = [this, acknowledged, deadline,
                 keys = std::move(keys)](const std::vector<PutResult>& results) {
    bool late = false;
    for (size_t i = 0; i < results.size(); ++i) {
      const PutResult& result = results[i];
      if (result.outcome == PutOutcome::kDivergent) LogDivergent(keys[i]);
      late |= MissedDeadline(result.status, deadline, clock_->Now());
      metrics_.Push(result.outcome).Increment();
      if (result.outcome == PutOutcome::kStored || result.outcome == PutOutcome::kHave) {
        acknowledged->fetch_add(1, std::memory_order_relaxed);
      }
    }
    if (late) metrics_.PushMissedDeadline().Increment();
    metrics_.PushPending().Decrement(static_cast<double>(results.size()));
    CallEnded();
  };
  CallContext context = ContextFor(request, deadline);
  if (!TryCall(
          [this, context, shared, answer] { store_->Put(context, std::move(*shared), answer); })) {
    metrics_.PushDropped().Increment(static_cast<double>(count));
    metrics_.PushPending().Decrement(static_cast<double>(count));
  }
}

void KvTransfer::LogDivergent(const BlockKey& key) {
  const TimePoint now = clock_->Now();
  {
    MutexLock lock(mutex_);
    if (now < next_divergent_log_) return;
    next_divergent_log_ = now + kDivergentLogInterval;
  }
  // The answer does not name the producer of what the store holds; this one is ours.
  Log(LogLevel::kError, "the KV store holds other bytes for a block that was computed here",
      {{"key", key.ToHex().substr(0, kLoggedKeyDigits)},
       {"producer", options_.producer_instance}});
}

void KvTransfer::RefuseBlock(CorruptReport report) {
  refused_.AddKey(report.key);
  TryCall([this, report = std::move(report)] {
    store_->ReportCorrupt(report);
    CallEnded();
  });
}

void KvTransfer::WaitUntilIdle(TimePoint deadline) {
  MutexLock lock(mutex_);
  while (open_calls_ > 0) {
    if (!none_open_.WaitUntil(mutex_, deadline)) return;
  }
}

void KvTransfer::Stop() {
  stop_.request_stop();
  std::vector<std::stop_source> sources;
  {
    MutexLock lock(mutex_);
    for (const auto& [load, source] : loads_) sources.push_back(source);
  }
  for (std::stop_source& source : sources) source.request_stop();
  caller_.Stop();  // runs what was accepted
  MutexLock lock(mutex_);
  while (open_calls_ > 0) none_open_.Wait(mutex_);
}

}  // namespace pagoda::worker
