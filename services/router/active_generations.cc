#include "services/router/active_generations.h"

#include <string>
#include <vector>

#include "services/router/generation.h"

namespace pagoda::router {
namespace {

// Also for those that run: their clients have not cancelled them and may ask another router.
Status Stopping() { return absl::UnavailableError("the router is stopping"); }

}  // namespace

Status ActiveGenerations::Add(const std::shared_ptr<Generation>& generation) {
  MutexLock lock(mutex_);
  if (stopping_) return Stopping();
  if (running_.size() >= limit_) {
    return absl::ResourceExhaustedError("the limit of " + std::to_string(limit_) +
                                        " running generations is reached; try again");
  }
  running_.emplace(generation.get(), generation);
  return absl::OkStatus();
}

void ActiveGenerations::Remove(const Generation* generation) {
  std::shared_ptr<Generation> last;  // freed after the lock
  MutexLock lock(mutex_);
  auto found = running_.find(generation);
  if (found == running_.end()) return;
  last = std::move(found->second);
  running_.erase(found);
  if (running_.empty()) changed_.SignalAll();
}

Status ActiveGenerations::Accepting() const {
  MutexLock lock(mutex_);
  return stopping_ ? Stopping() : absl::OkStatus();
}

void ActiveGenerations::CancelAll() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  for (auto& generation : All()) generation->Cancel(Stopping());
}

bool ActiveGenerations::WaitUntilEmpty(TimePoint deadline) {
  MutexLock lock(mutex_);
  while (!running_.empty()) {
    if (!changed_.WaitUntil(mutex_, deadline)) return running_.empty();
  }
  return true;
}

std::vector<std::shared_ptr<Generation>> ActiveGenerations::All() const {
  std::vector<std::shared_ptr<Generation>> all;
  MutexLock lock(mutex_);
  for (const auto& [key, generation] : running_) all.push_back(generation);
  return all;
}

size_t ActiveGenerations::size() const {
  MutexLock lock(mutex_);
  return running_.size();
}

}  // namespace pagoda::router
