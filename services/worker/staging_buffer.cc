#include "services/worker/staging_buffer.h"

#include <algorithm>
#include <new>

namespace pagoda::worker {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

StagingBuffer::Slots::~Slots() {
  for (std::byte* memory : free) ::operator delete(memory, kAlignment);
}

StagingBuffer::StagingBuffer(size_t block_bytes, size_t max_bytes)
    : block_bytes_(block_bytes),
      num_slots_(std::max<size_t>(1, max_bytes / block_bytes)),
      slots_(std::make_shared<Slots>()) {}

std::shared_ptr<std::byte> StagingBuffer::TryTake() {
  std::byte* memory = nullptr;
  {
    MutexLock lock(slots_->mutex);
    if (!slots_->free.empty()) {
      memory = slots_->free.back();
      slots_->free.pop_back();
    } else if (slots_->num_made < num_slots_) {
      ++slots_->num_made;
    } else {
      return nullptr;
    }
  }
  // Made when first needed: a worker that never pushes keeps the memory.
  if (memory == nullptr) memory = static_cast<std::byte*>(::operator new(block_bytes_, kAlignment));
  return {memory, [slots = slots_](std::byte* taken) {
            MutexLock lock(slots->mutex);
            slots->free.push_back(taken);
          }};
}

}  // namespace pagoda::worker
