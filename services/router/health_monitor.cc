#include "services/router/health_monitor.h"

#include <utility>

#include "services/router/generation.h"

namespace pagoda::router {

void HealthMonitor::Start() {
  thread_ = std::thread([this] { Run(); });
}

void HealthMonitor::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void HealthMonitor::Run() {
  while (true) {
    Tick();
    TimePoint next = SystemClock::Get()->Now() + kTick;
    MutexLock lock(mutex_);
    while (!stop_ && changed_.WaitUntil(mutex_, next)) {
    }
    if (stop_) return;
  }
}

void HealthMonitor::Tick() {
  TimePoint now = core_->clock->Now();
  Duration since = now - std::exchange(last_, now);
  auto hanging = core_->workers->CheckHealth(since > kStall ? since : Duration::zero());
  for (auto [instance_id, hang] : hanging) {
    auto before = hanging_.find(instance_id);
    if (before == hanging_.end() || before->second != hang) core_->metrics->CountHang(hang);
  }
  hanging_ = std::move(hanging);
  for (const auto& generation : core_->active->All()) generation->Tick(hanging_);
}

}  // namespace pagoda::router
