#include "services/worker/registrar.h"

#include <grpcpp/channel.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "common/base/logging.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "pagoda/v1/control.grpc.pb.h"

namespace pagoda::worker {
namespace {

using std::chrono::milliseconds;

constexpr Duration kMinBackoff = milliseconds(100);
constexpr Duration kMaxBackoff = milliseconds(2000);
// A router on the same network answers in milliseconds; one that takes longer is as good as gone.
constexpr milliseconds kRegisterTimeout{2000};

}  // namespace

Registrar::Registrar(Options options)
    : options_(std::move(options)),
      interval_ms_(std::chrono::duration_cast<milliseconds>(options_.report_interval).count()),
      channel_(rpc::MakeChannel(options_.router_address, rpc::ChannelKind::kControl)) {
  thread_ = std::thread([this] { Run(); });
}

Registrar::~Registrar() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    if (current_call_ != nullptr) current_call_->TryCancel();
    changed_.SignalAll();
  }
  thread_.join();
}

void Registrar::ReportSoon() {
  MutexLock lock(mutex_);
  report_soon_ = true;
  changed_.SignalAll();
}

void Registrar::Run() {
  std::minstd_rand random(static_cast<unsigned>(options_.registration.instance_id()));
  Duration backoff = kMinBackoff;
  while (!stopped()) {
    if (Register()) {
      backoff = kMinBackoff;
      Report();
      registered_ = false;
      if (!stopped()) Log(LogLevel::kWarning, "report stream to the router ended");
    }
    std::uniform_real_distribution<double> jitter(0.5, 1.0);
    if (WaitOrStopped(FromSeconds(ToSeconds(backoff) * jitter(random)))) return;
    backoff = std::min(2 * backoff, kMaxBackoff);
  }
}

bool Registrar::Register() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kRegisterTimeout);
  if (!SetCurrentCall(&context)) return false;
  v1::RegisterResponse response;
  grpc::Status status =
      v1::Control::NewStub(channel_)->Register(&context, options_.registration, &response);
  SetCurrentCall(nullptr);
  if (!status.ok()) {
    // An unreachable router is normal while a cluster starts; a refusal is not.
    bool refused = status.error_code() != grpc::StatusCode::UNAVAILABLE;
    Log(refused ? LogLevel::kError : LogLevel::kDebug, "router did not register this worker",
        {{"status", rpc::FromGrpc(status)}});
    return false;
  }
  if (response.report_interval_ms() > 0) interval_ms_ = response.report_interval_ms();
  return true;
}

void Registrar::Report() {
  grpc::ClientContext context;
  if (!SetCurrentCall(&context)) return;
  auto stream = v1::Control::NewStub(channel_)->Report(&context);
  v1::ReportRequest report;
  v1::ReportResponse answer;
  uint64_t sequence = 0;
  do {
    report.Clear();
    report.set_instance_id(options_.registration.instance_id());
    report.set_sequence(++sequence);
    options_.fill_report(report);
    if (!stream->Write(report) || !stream->Read(&answer)) break;
    if (!registered_) OnFirstAnswer();
  } while (!WaitOrStopped(milliseconds(interval_ms_)));
  // The call is over for us either way; without the cancel Finish would wait for a router that
  // hangs.
  context.TryCancel();
  stream->Finish();
  SetCurrentCall(nullptr);
}

void Registrar::OnFirstAnswer() {
  registered_ = true;
  Log(LogLevel::kInfo, "registered at router", {{"router", options_.router_address}});
  options_.on_registered();
}

bool Registrar::WaitOrStopped(Duration time) {
  TimePoint deadline = SystemClock::Get()->Now() + time;
  MutexLock lock(mutex_);
  while (!stop_ && !report_soon_) {
    if (!changed_.WaitUntil(mutex_, deadline)) break;
  }
  report_soon_ = false;
  return stop_;
}

bool Registrar::stopped() {
  MutexLock lock(mutex_);
  return stop_;
}

bool Registrar::SetCurrentCall(grpc::ClientContext* context) {
  MutexLock lock(mutex_);
  current_call_ = context;
  return !stop_;
}

}  // namespace pagoda::worker
