#include "services/kvstore/disk_tier.h"

#include <utility>

#include "common/base/logging.h"

namespace pagoda::kvstore {
namespace {

constexpr int kLowestPriority = 19;

Status QueueFull(std::string_view what) {
  return absl::ResourceExhaustedError("the disk's queue of " + std::string(what) +
                                      " is full or closed");
}

}  // namespace

StatusOr<std::unique_ptr<DiskTier>> DiskTier::Open(const Options& options) {
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<BlockDb> db, BlockDb::Open(options.db));
  return std::unique_ptr<DiskTier>(new DiskTier(options, std::move(db)));
}

DiskTier::DiskTier(const Options& options, std::unique_ptr<BlockDb> db)
    : options_(options),
      clock_(*options.db.clock),
      db_(std::move(db)),
      reads_({.name = "disk-read", .threads = 1, .queue_limit = options.read_queue}),
      writes_(options.write_queue) {
  MutexLock lock(stop_mutex_);
  writer_ = std::thread([this] { WriteLoop(); });
}

DiskTier::~DiskTier() { Stop(); }

void DiskTier::Stop() {
  writes_.Close();
  stopping_ = true;
  {
    MutexLock lock(stop_mutex_);
    if (writer_.joinable()) writer_.join();
  }
  reads_.Stop();  // last: who hears that a block was written may report it
}

void DiskTier::WriteLoop() {
  SetUpThread("disk-write", kLowestPriority);
  TimePoint flush_at = TimePoint::max();  // sooner when something is not flushed
  while (true) {
    bool stopping = stopping_;  // before the queue is looked at: closed then, so empty is the end
    auto task = writes_.PopUntil(flush_at);
    if (task) (*task)();
    if (task && flush_at == TimePoint::max()) {
      flush_at = SystemClock::Get()->Now() + options_.flush_interval;
    }
    bool end = !task && stopping;
    if (end || SystemClock::Get()->Now() >= flush_at) {
      if (Status status = db_->Flush(); !status.ok()) {
        Log(LogLevel::kError, "blocks could not be flushed to disk", {{"status", status}});
      }
      flush_at = TimePoint::max();
    }
    if (end) return;
  }
}

void DiskTier::FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                           FindCallback done) {
  Status status = CheckCall(context, refs.size(), clock_.Now());
  if (!status.ok()) return done(FailedFind(status, refs.size()));
  FindResult result;
  result.blocks.reserve(refs.size());
  for (const BlockRef& ref : refs) {
    result.blocks.push_back({false, db_->Lookup(ref.key).has_value()});
  }
  done(std::move(result));
}

void DiskTier::Get(const CallContext& context, std::vector<BlockRef> refs,
                   std::shared_ptr<BlockSink> sink) {
  size_t count = refs.size();
  Status status = CheckCall(context, count, clock_.Now());
  if (!status.ok()) return FailGet(status, count, *sink);
  bool accepted = reads_.TryRun([this, context, refs = std::move(refs), sink] {
    for (size_t i = 0; i < refs.size(); ++i) {
      Status status = CheckCall(context, refs.size(), clock_.Now());
      sink->Done(i, status.ok() ? db_->Read(i, refs[i].key, *sink)
                                : GetResult{GetOutcome::kFailed, Tier::kNone, status, {}});
    }
    sink->Finished();
  });
  if (!accepted) FailGet(QueueFull("reads"), count, *sink);
}

void DiskTier::Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) {
  size_t count = blocks.size();
  Status status = CheckCall(context, count, clock_.Now());
  if (!status.ok()) return done(FailedPut(status, count));
  bool accepted = writes_.TryPush([this, context, blocks = std::move(blocks), done]() mutable {
    std::vector<PutResult> results;
    results.reserve(blocks.size());
    for (PutBlock& block : blocks) {
      Status status = CheckCall(context, blocks.size(), clock_.Now());
      results.push_back(status.ok() ? db_->Write(block)
                                    : PutResult{PutOutcome::kFailed, 0, status});
      block.payload = {};
    }
    done(std::move(results));
  });
  if (!accepted) done(FailedPut(QueueFull("writes"), count));
}

// A report that finds the queue full is lost; the next reader makes another.
void DiskTier::ReportCorrupt(const CorruptReport& report) {
  (void)reads_.TryRun([this, report] { db_->ReportCorrupt(report); });
}

std::optional<IndexedBlock> DiskTier::Lookup(const BlockKey& key) const { return db_->Lookup(key); }

StatusOr<StoreStats> DiskTier::Stats() { return db_->Stats(); }

}  // namespace pagoda::kvstore
