#include "services/ctl/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/address.h"
#include "common/base/logging.h"

namespace pagoda::ctl {
namespace {

// A child that closes its output without a SIGCHLD reaching us is still found within this time.
constexpr auto kLongestPoll = std::chrono::seconds(1);

// The exit status of a program whose flags are wrong: no restart mends them.
constexpr int kWrongUsage = 2;

StatusOr<std::string> AddressField(const nlohmann::json& object, const char* name) {
  auto field = object.find(name);
  if (field == object.end() || !field->is_string()) {
    return absl::InvalidArgumentError(std::string("the ready line has no ") + name + " address");
  }
  std::string address = field->get<std::string>();
  Status parsed = ParseHostPort(address).status();
  if (!parsed.ok()) return Annotate(parsed, std::string("the ready line's ") + name);
  return address;
}

}  // namespace

StatusOr<ReadyLine> ParseReadyLine(std::string_view line) {
  nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || object.value("ready", nlohmann::json()) != true) {
    return absl::InvalidArgumentError("not a ready line: \"" + std::string(line.substr(0, 200)) +
                                      "\"");
  }
  ReadyLine ready;
  PAGODA_ASSIGN_OR_RETURN(ready.grpc, AddressField(object, "grpc"));
  PAGODA_ASSIGN_OR_RETURN(ready.http, AddressField(object, "http"));
  return ready;
}

std::vector<std::string> WithAddresses(const std::vector<std::string>& arguments,
                                       const ReadyLine& addresses) {
  std::vector<std::string> result;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--grpc-address" || arguments[i] == "--http-address") {
      ++i;
    } else {
      result.push_back(arguments[i]);
    }
  }
  result.insert(result.end(), {"--grpc-address", addresses.grpc, "--http-address", addresses.http});
  return result;
}

Supervisor::Supervisor(bool restart, Duration restart_ready_limit)
    : restart_(restart), restart_ready_limit_(restart_ready_limit) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // ignored by our parent, it would hide how children end
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

Supervisor::~Supervisor() {
  children_.clear();
  close(signal_fd_);
}

Status Supervisor::Start(const std::string& name, const std::string& file,
                         const std::vector<std::string>& arguments) {
  StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start(file, arguments);
  if (!process.ok()) return Annotate(process.status(), name);
  Log(LogLevel::kInfo, "started", {{"child", name}, {"pid", (*process)->pid()}});
  Child& child = children_.emplace_back();
  child.name = name;
  child.file = file;
  child.arguments = arguments;
  child.process = *std::move(process);
  return absl::OkStatus();
}

const Supervisor::Child& Supervisor::Find(std::string_view name) const {
  return *std::find_if(children_.begin(), children_.end(),
                       [&](const Child& child) { return child.name == name; });
}

void Supervisor::WaitForEvent(TimePoint deadline) {
  std::vector<pollfd> waited{{signal_fd_, POLLIN, 0}};
  for (const Child& child : children_) {
    if (child.process->output_fd() >= 0) waited.push_back({child.process->output_fd(), POLLIN, 0});
  }
  auto left =
      std::clamp<Duration>(deadline - SystemClock::Get()->Now(), Duration::zero(), kLongestPoll);
  // One more millisecond, or the last part of the wait would spin.
  auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(left).count() + 1;
  poll(waited.data(), waited.size(), static_cast<int>(left_ms));
  signalfd_siginfo info;
  while (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) ++stop_signals_;
  }
}

Status Supervisor::TakeOutput(Child& child) {
  for (const std::string& line : child.process->ReadLines()) {
    if (child.ready) {
      std::fprintf(stderr, "%s\n", line.c_str());
      continue;
    }
    StatusOr<ReadyLine> ready = ParseReadyLine(line);
    if (!ready.ok())
      return absl::UnavailableError(child.name + ": " + std::string(ready.status().message()));
    child.addresses = *std::move(ready);
    child.ready = true;
    child.ready_by.reset();
    child.backoff.OnReady(SystemClock::Get()->Now());
    Log(LogLevel::kInfo, "ready",
        {{"child", child.name},
         {"pid", child.process->pid()},
         {"grpc", child.addresses.grpc},
         {"http", child.addresses.http}});
  }
  return absl::OkStatus();
}

Status Supervisor::Step(TimePoint deadline) {
  WaitForEvent(deadline);
  if (stop_signals_ > 0) return absl::CancelledError("asked to stop");
  for (Child& child : children_) PAGODA_RETURN_IF_ERROR(TakeOutput(child));
  return absl::OkStatus();
}

Supervisor::Child* Supervisor::FindEnded() {
  for (Child& child : children_) {
    if (!child.gone && !child.restart_at && !child.process->Running()) return &child;
  }
  return nullptr;
}

Status Supervisor::WaitReady(TimePoint deadline) {
  while (true) {
    auto waiting = std::find_if(children_.begin(), children_.end(),
                                [](const Child& child) { return !child.ready; });
    if (waiting == children_.end()) return absl::OkStatus();
    if (SystemClock::Get()->Now() >= deadline) {
      return absl::UnavailableError(waiting->name + " was not ready in time");
    }
    PAGODA_RETURN_IF_ERROR(Step(deadline));
    if (Child* ended = FindEnded()) {
      std::string how = ended->name + " " + ended->process->DescribeEnd() +
                        (ended->ready ? "" : " before it was ready");
      if (ended->process->exit_status() == kWrongUsage) return absl::InvalidArgumentError(how);
      return absl::UnavailableError(how);
    }
  }
}

void Supervisor::TakeEnd(Child& child) {
  child.ready_by.reset();
  const std::string reason = child.process->DescribeEnd();
  if (!restart_ || child.process->exit_status() == kWrongUsage) {
    child.gone = true;
    Log(LogLevel::kError, "a child ended", {{"child", child.name}, {"reason", reason}});
    return;
  }
  TimePoint now = SystemClock::Get()->Now();
  Duration wait = child.backoff.OnEnd(now);
  child.restart_at = now + wait;
  Log(LogLevel::kError, "a child ended and will be restarted",
      {{"child", child.name}, {"reason", reason}, {"wait_seconds", ToSeconds(wait)}});
}

void Supervisor::StartAgain(Child& child) {
  StatusOr<std::unique_ptr<ChildProcess>> process =
      ChildProcess::Start(child.file, WithAddresses(child.arguments, child.addresses));
  if (!process.ok()) {
    TimePoint now = SystemClock::Get()->Now();
    Duration wait = child.backoff.OnEnd(now);
    child.restart_at = now + wait;
    Log(LogLevel::kError, "a child cannot be restarted yet",
        {{"child", child.name},
         {"reason", std::string(process.status().message())},
         {"wait_seconds", ToSeconds(wait)}});
    return;
  }
  child.restart_at.reset();
  child.ready = false;
  child.ready_by = SystemClock::Get()->Now() + restart_ready_limit_;
  child.process = *std::move(process);
  Log(LogLevel::kInfo, "restarted", {{"child", child.name}, {"pid", child.process->pid()}});
}

TimePoint Supervisor::RestartDue() {
  TimePoint next = TimePoint::max();
  for (Child& child : children_) {
    if (child.restart_at && *child.restart_at <= SystemClock::Get()->Now()) StartAgain(child);
    if (child.restart_at) next = std::min(next, *child.restart_at);
  }
  return next;
}

TimePoint Supervisor::KillHanging() {
  TimePoint next = TimePoint::max();
  for (Child& child : children_) {
    if (child.ready_by && *child.ready_by <= SystemClock::Get()->Now()) {
      Log(LogLevel::kError, "killed, because it was not ready in time",
          {{"child", child.name}, {"pid", child.process->pid()}});
      child.process->Signal(SIGKILL);
      child.ready_by.reset();  // its end follows
    }
    if (child.ready_by) next = std::min(next, *child.ready_by);
  }
  return next;
}

StatusOr<std::string> Supervisor::WaitForEnd() {
  while (true) {
    while (Child* ended = FindEnded()) {
      TakeEnd(*ended);
      if (ended->gone) return ended->name;
    }
    const TimePoint restart_due = RestartDue();  // which may start some that are then waited for
    PAGODA_RETURN_IF_ERROR(Step(std::min(restart_due, KillHanging())));
  }
}

void Supervisor::Stop(const std::vector<std::vector<std::string>>& stages, Duration grace) {
  int signals_before = stop_signals_;
  for (const std::vector<std::string>& names : stages) StopStage(names, grace, signals_before);
}

void Supervisor::StopStage(const std::vector<std::string>& names, Duration grace,
                           int signals_before) {
  std::vector<Child*> stopping;
  for (Child& child : children_) {
    if (std::find(names.begin(), names.end(), child.name) == names.end()) continue;
    child.process->Signal(SIGTERM);
    stopping.push_back(&child);
  }
  TimePoint deadline = SystemClock::Get()->Now() + grace;
  bool killed = false;
  while (std::any_of(stopping.begin(), stopping.end(),
                     [](Child* child) { return child->process->Running(); })) {
    bool impatient = stop_signals_ > signals_before || SystemClock::Get()->Now() >= deadline;
    if (impatient && !killed) {
      killed = true;
      for (Child* child : stopping) {
        if (!child->process->Running()) continue;
        Log(LogLevel::kWarning, "killed, because it did not stop", {{"child", child->name}});
        child->process->Signal(SIGKILL);
      }
    }
    WaitForEvent(killed ? TimePoint::max() : deadline);
    // What they still print must not fill the pipe and hold them.
    for (Child& child : children_) {
      for (const std::string& line : child.process->ReadLines()) {
        std::fprintf(stderr, "%s\n", line.c_str());
      }
    }
  }
}

}  // namespace pagoda::ctl
