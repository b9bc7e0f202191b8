#include "common/kv/breaker_store.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "common/base/logging.h"
#include "common/base/mutex.h"
#include "common/base/random.h"

namespace pagoda {
namespace {

enum class Verdict { kNone, kSuccess, kFailure };
enum class Kind { kFind, kGet, kPut };

// Of an error.
Verdict VerdictOf(const Status& status, const CallContext& context, TimePoint now) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kInternal:
      return Verdict::kFailure;
    case absl::StatusCode::kCancelled:
      return now >= context.deadline ? Verdict::kFailure : Verdict::kNone;
    default:
      return Verdict::kNone;
  }
}

}  // namespace

class BreakerStore::Circuit {
 public:
  explicit Circuit(const Options& options) : options_(options) {
    if (options.metrics == nullptr) return;
    state_gauge_ = &options.metrics->Gauge(
        "kv_breaker_state", "calls to the KV store: 0 go through, 1 wait for a probe, 2 are off");
    retry_in_gauge_ =
        &options.metrics->Gauge("kv_breaker_retry_in_seconds",
                                "the pause before the next probe of the KV store, as chosen");
    opened_ = &options.metrics->Counter("kv_breaker_opened_total",
                                        "how often the KV store was left alone after failures");
  }

  TimePoint Now() const { return options_.clock->Now(); }

  bool closed() const {
    MutexLock lock(mutex_);
    return state_ == State::kClosed;
  }

  // OK, or why no call goes through now. `probe`: one is to be sent.
  Status Admit(bool* probe) {
    MutexLock lock(mutex_);
    if (state_ == State::kClosed) return absl::OkStatus();
    *probe = state_ == State::kOpen && Now() >= retry_at_;
    if (*probe) Enter(State::kProbing);
    return absl::UnavailableError("the KV store is left alone after failures");
  }

  // What became of a call that went through.
  void Heard(Kind kind, Verdict verdict, const Status& why) {
    MutexLock lock(mutex_);
    if (state_ != State::kClosed || verdict == Verdict::kNone) return;
    if (verdict == Verdict::kSuccess) return Works(kind);
    ++failures_[static_cast<size_t>(kind)];
    if (NumFailures() < kFailuresToOpen) return;
    if (opened_ != nullptr) opened_->Increment();
    Open("the KV store is left alone: it failed too often in a row", why);
  }

  void ProbeEnded(const Status& status) {
    MutexLock lock(mutex_);
    if (!status.ok()) return Open("the KV store does not answer yet", status);
    Works(Kind::kFind);
    Enter(State::kClosed);
    Log(LogLevel::kInfo, "the KV store answers again");
  }

 private:
  enum class State { kClosed, kProbing, kOpen };  // by the gauge's numbers

  int NumFailures() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::accumulate(failures_.begin(), failures_.end(), 0);
  }
  void Works(Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    failures_[static_cast<size_t>(kind)] = 0;
    if (NumFailures() == 0) pause_ = Duration::zero();
  }
  void Open(const char* message, const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    pause_ = std::clamp(2 * pause_, kFirstPause, kMaxPause);
    Duration wait = FromSeconds(ToSeconds(pause_) * (1 - options_.random() / 5));
    retry_at_ = Now() + wait;
    Enter(State::kOpen);
    if (retry_in_gauge_ != nullptr) retry_in_gauge_->Set(ToSeconds(wait));
    Log(LogLevel::kWarning, message, {{"retry_in_s", ToSeconds(wait)}, {"why", why}});
  }
  void Enter(State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    state_ = state;
    if (state_gauge_ == nullptr) return;
    state_gauge_->Set(static_cast<double>(state));
    retry_in_gauge_->Set(0);
  }

  const Options options_;
  prometheus::Gauge* state_gauge_ = nullptr;  // null, as the next two: not measured
  prometheus::Gauge* retry_in_gauge_ = nullptr;
  prometheus::Counter* opened_ = nullptr;
  mutable Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kClosed;
  std::array<int, 3> failures_ ABSL_GUARDED_BY(mutex_){};  // by kind, since its last success
  Duration pause_ ABSL_GUARDED_BY(mutex_){};  // the last one, before jitter; 0: all is well
  TimePoint retry_at_ ABSL_GUARDED_BY(mutex_);
};

// Judges a Get by the answers for its blocks.
class BreakerStore::WatchingSink final : public BlockSink {
 public:
  WatchingSink(std::shared_ptr<Circuit> circuit, const CallContext& context,
               std::shared_ptr<BlockSink> sink)
      : circuit_(std::move(circuit)), context_(context), sink_(std::move(sink)) {}

  StatusOr<Destination> Begin(size_t index, const RecordHeader& header) override {
    return sink_->Begin(index, header);
  }
  void Done(size_t index, GetResult result) override {
    Verdict verdict = result.outcome == GetOutcome::kFailed
                          ? VerdictOf(result.status, context_, circuit_->Now())
                          : Verdict::kSuccess;
    if (verdict > verdict_) {  // a failure outweighs a success
      verdict_ = verdict;
      why_ = result.status;
    }
    sink_->Done(index, std::move(result));
  }
  void Finished() override {
    circuit_->Heard(Kind::kGet, verdict_, why_);
    sink_->Finished();
  }

 private:
  const std::shared_ptr<Circuit> circuit_;
  const CallContext context_;
  const std::shared_ptr<BlockSink> sink_;
  Verdict verdict_ = Verdict::kNone;
  Status why_;
};

double BreakerStore::RandomFraction() { return static_cast<double>(RandomId() >> 11) * 0x1p-53; }

BreakerStore::BreakerStore(BlockStore* inner, const Options& options)
    : inner_(inner), circuit_(std::make_shared<Circuit>(options)) {}

BreakerStore::~BreakerStore() = default;

bool BreakerStore::closed() const { return circuit_->closed(); }

Status BreakerStore::Admit(const CallContext& context, size_t blocks) {
  PAGODA_RETURN_IF_ERROR(CheckCall(context, blocks, circuit_->Now()));
  bool probe = false;
  Status status = circuit_->Admit(&probe);
  if (probe) {
    CallContext patient{.deadline = circuit_->Now() + kProbeTimeout};
    inner_->FindMissing(patient, {}, [circuit = circuit_](const FindResult& result) {
      circuit->ProbeEnded(result.status);
    });
  }
  return status;
}

void BreakerStore::FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                               FindCallback done) {
  if (Status status = Admit(context, refs.size()); !status.ok()) {
    return done(FailedFind(status, refs.size()));
  }
  inner_->FindMissing(context, std::move(refs),
                      [circuit = circuit_, context, done = std::move(done)](FindResult result) {
                        Verdict verdict = result.status.ok()
                                              ? Verdict::kSuccess
                                              : VerdictOf(result.status, context, circuit->Now());
                        circuit->Heard(Kind::kFind, verdict, result.status);
                        done(std::move(result));
                      });
}

void BreakerStore::Get(const CallContext& context, std::vector<BlockRef> refs,
                       std::shared_ptr<BlockSink> sink) {
  if (Status status = Admit(context, refs.size()); !status.ok()) {
    return FailGet(status, refs.size(), *sink);
  }
  inner_->Get(context, std::move(refs),
              std::make_shared<WatchingSink>(circuit_, context, std::move(sink)));
}

void BreakerStore::Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) {
  if (Status status = Admit(context, blocks.size()); !status.ok()) {
    return done(FailedPut(status, blocks.size()));
  }
  inner_->Put(
      context, std::move(blocks),
      [circuit = circuit_, context, done = std::move(done)](std::vector<PutResult> results) {
        Verdict verdict = Verdict::kNone;
        Status why;
        for (const PutResult& result : results) {
          if (result.outcome == PutOutcome::kNoRoom) continue;
          Verdict one = result.outcome == PutOutcome::kFailed
                            ? VerdictOf(result.status, context, circuit->Now())
                            : Verdict::kSuccess;
          if (one <= verdict) continue;
          verdict = one;
          why = result.status;
        }
        circuit->Heard(Kind::kPut, verdict, why);
        done(std::move(results));
      });
}

void BreakerStore::ReportCorrupt(const CorruptReport& report) {
  if (closed()) inner_->ReportCorrupt(report);
}

}  // namespace pagoda
