#include "services/kvstore/slab.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/base/bytes.h"

namespace pagoda::kvstore {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 46;  // half of what a process can map

uint64_t RoundUp(uint64_t bytes) {
  return (bytes + Slab::kSlotAlign - 1) / Slab::kSlotAlign * Slab::kSlotAlign;
}

Status SystemError(std::string_view what, uint64_t bytes) {
  return absl::ResourceExhaustedError(std::string(what) + " of " + FormatBytes(bytes) + ": " +
                                      std::strerror(errno));
}

}  // namespace

Slot::Slot(std::shared_ptr<Slab> slab, uint64_t offset, uint64_t bytes)
    : slab_(std::move(slab)), offset_(offset), bytes_(bytes), data_(slab_->base_ + offset) {}

Slot::~Slot() { slab_->Free(offset_, bytes_); }

StatusOr<std::shared_ptr<Slab>> Slab::Create(uint64_t bytes) {
  if (bytes == 0 || bytes > kMaxBytes) {
    return absl::InvalidArgumentError("slab of " + std::to_string(bytes) + " bytes, must be 1 to " +
                                      std::to_string(kMaxBytes));
  }
  bytes = RoundUp(bytes);
  int fd = memfd_create("pagoda-kv", MFD_CLOEXEC);
  if (fd < 0) return SystemError("memfd", bytes);
  void* base = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (base == MAP_FAILED) {
    Status status = SystemError("mapping", bytes);
    close(fd);
    return status;
  }
  return std::shared_ptr<Slab>(new Slab(fd, static_cast<std::byte*>(base), bytes));
}

Slab::Slab(int fd, std::byte* base, uint64_t bytes) : fd_(fd), base_(base), bytes_(bytes) {
  MutexLock lock(mutex_);
  AddHole(0, bytes);
}

Slab::~Slab() {
  munmap(base_, bytes_);
  close(fd_);
}

std::shared_ptr<Slot> Slab::Allocate(uint64_t bytes) {
  if (bytes > bytes_) return nullptr;  // before rounding, which could wrap
  bytes = RoundUp(bytes);
  uint64_t offset = 0;
  {
    MutexLock lock(mutex_);
    auto hole = holes_by_size_.lower_bound({bytes, 0});
    if (hole == holes_by_size_.end()) return nullptr;
    uint64_t hole_bytes = hole->first;
    offset = hole->second;
    RemoveHole(offset, hole_bytes);
    if (hole_bytes > bytes) AddHole(offset + bytes, hole_bytes - bytes);
    used_ += bytes;
  }
  return std::make_shared<Slot>(shared_from_this(), offset, bytes);
}

void Slab::Free(uint64_t offset, uint64_t bytes) {
  MutexLock lock(mutex_);
  used_ -= bytes;
  auto next = holes_.lower_bound(offset);
  if (next != holes_.begin()) {
    auto [before, before_bytes] = *std::prev(next);
    if (before + before_bytes == offset) {
      RemoveHole(before, before_bytes);
      offset = before;
      bytes += before_bytes;
    }
  }
  if (next != holes_.end() && offset + bytes == next->first) {
    uint64_t next_bytes = next->second;
    RemoveHole(next->first, next_bytes);
    bytes += next_bytes;
  }
  AddHole(offset, bytes);
}

void Slab::AddHole(uint64_t offset, uint64_t bytes) {
  holes_.emplace(offset, bytes);
  holes_by_size_.emplace(bytes, offset);
}

void Slab::RemoveHole(uint64_t offset, uint64_t bytes) {
  holes_.erase(offset);
  holes_by_size_.erase({bytes, offset});
}

uint64_t Slab::used() const {
  MutexLock lock(mutex_);
  return used_;
}

Status Slab::CheckIntegrity() const {
  MutexLock lock(mutex_);
  uint64_t free = 0;
  uint64_t end = 0;
  bool first = true;
  for (auto [offset, bytes] : holes_) {
    if (!first && offset <= end) return absl::InternalError("slab: holes touch or overlap");
    if (!holes_by_size_.contains({bytes, offset})) {
      return absl::InternalError("slab: the two lists of holes differ");
    }
    first = false;
    end = offset + bytes;
    free += bytes;
  }
  if (holes_.size() != holes_by_size_.size() || end > bytes_ || free + used_ != bytes_) {
    return absl::InternalError("slab: used and free bytes do not make the whole");
  }
  return absl::OkStatus();
}

}  // namespace pagoda::kvstore
