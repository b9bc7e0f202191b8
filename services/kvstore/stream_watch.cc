#include "services/kvstore/stream_watch.h"

namespace pagoda::kvstore {

StreamWatch::StreamWatch(Clock* clock) : clock_(clock), shared_(std::make_shared<Shared>()) {
  thread_ = std::thread([this] { Run(); });
}

StreamWatch::~StreamWatch() {
  {
    MutexLock lock(shared_->mutex);
    shared_->stopped = true;
    shared_->changed.SignalAll();
  }
  thread_.join();
}

void StreamWatch::Add(const std::shared_ptr<WatchedStream>& stream) {
  MutexLock lock(shared_->mutex);
  if (shared_->streams.empty()) shared_->changed.SignalAll();
  shared_->streams.push_back(stream);
}

std::function<void()> StreamWatch::Waker() const {
  return [shared = shared_] {
    MutexLock lock(shared->mutex);
    shared->woken = true;
    shared->changed.SignalAll();
  };
}

void StreamWatch::Run() {
  std::vector<std::shared_ptr<WatchedStream>> live;
  while (WaitForWork(live)) {
    // Without the lock: a stream may end, and so release itself, inside Tick.
    for (const auto& stream : live) stream->Tick(clock_->Now());
    live.clear();
  }
}

bool StreamWatch::WaitForWork(std::vector<std::shared_ptr<WatchedStream>>& live) {
  Shared& shared = *shared_;
  MutexLock lock(shared.mutex);
  TimePoint next = SystemClock::Get()->Now() + kPeriod;
  while (!shared.stopped && !shared.woken) {
    if (shared.streams.empty()) {
      shared.changed.Wait(shared.mutex);
      next = SystemClock::Get()->Now() + kPeriod;
    } else if (!shared.changed.WaitUntil(shared.mutex, next)) {
      break;
    }
  }
  if (shared.stopped) return false;
  shared.woken = false;
  std::erase_if(shared.streams, [&](const std::weak_ptr<WatchedStream>& weak) {
    auto stream = weak.lock();
    if (stream == nullptr) return true;
    live.push_back(std::move(stream));
    return false;
  });
  return true;
}

}  // namespace pagoda::kvstore
