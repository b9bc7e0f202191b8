#include "services/kvstore/inflight_bytes.h"

#include <utility>

namespace pagoda::kvstore {

bool InflightBytes::TryTake(uint64_t bytes) {
  MutexLock lock(mutex_);
  if (taken_ > 0 && (taken_ >= limit_ || bytes > limit_ - taken_)) {
    wanted_ = true;
    return false;
  }
  taken_ += bytes;
  return true;
}

void InflightBytes::Return(uint64_t bytes) {
  bool wanted = false;
  {
    MutexLock lock(mutex_);
    taken_ -= bytes;
    std::swap(wanted, wanted_);
  }
  if (wanted) on_room_();
}

uint64_t InflightBytes::taken() const {
  MutexLock lock(mutex_);
  return taken_;
}

BlockView ReturnWhenReleased(BlockView view, std::shared_ptr<InflightBytes> budget) {
  struct Taken {
    ~Taken() { budget->Return(bytes); }
    std::shared_ptr<InflightBytes> budget;
    uint64_t bytes;
    std::shared_ptr<const void> owner;
  };
  auto taken = std::make_shared<Taken>();
  taken->budget = std::move(budget);
  taken->bytes = view.size;
  taken->owner = std::move(view.owner);
  view.owner = std::move(taken);
  return view;
}

uint64_t ConnectionBudgets::taken() {
  MutexLock lock(mutex_);
  uint64_t sum = 0;
  for (const auto& [peer, known] : budgets_) {
    if (auto budget = known.lock()) sum += budget->taken();
  }
  return sum;
}

std::shared_ptr<InflightBytes> ConnectionBudgets::For(const std::string& peer) {
  MutexLock lock(mutex_);
  std::erase_if(budgets_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<InflightBytes>& known = budgets_[peer];
  std::shared_ptr<InflightBytes> budget = known.lock();
  if (budget == nullptr) {
    budget = std::make_shared<InflightBytes>(limit_, on_room_);
    known = budget;
  }
  return budget;
}

}  // namespace pagoda::kvstore
