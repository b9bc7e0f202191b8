// The memory of the RAM tier: one mapping (a memfd, so that it can be handed to other processes),
// cut into slots. A slot has the size of its record; a freed slot joins its free neighbours and the
// smallest hole that fits is taken first, so blocks of one layout reuse each other's slots exactly.
//
// Concurrency: every method may be called from any thread. A slot's bytes belong to who holds the
// Slot.
#ifndef PAGODA_SERVICES_KVSTORE_SLAB_H_
#define PAGODA_SERVICES_KVSTORE_SLAB_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"

namespace pagoda::kvstore {

class Slab;

// A piece of the slab; freed when the last holder lets go. Keeps the slab mapped.
class Slot {
 public:
  Slot(std::shared_ptr<Slab> slab, uint64_t offset, uint64_t bytes);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }  // what it costs: rounded up

 private:
  const std::shared_ptr<Slab> slab_;
  const uint64_t offset_;
  const uint64_t bytes_;
  std::byte* const data_;
};

class Slab : public std::enable_shared_from_this<Slab> {
 public:
  // Slots begin and end at multiples of this: payloads behind a 200-byte header stay aligned to
  // cache lines, and rounding costs little beside blocks of hundreds of KiB.
  static constexpr uint64_t kSlotAlign = 256;

  // Error: INVALID_ARGUMENT when `bytes` is 0 or over 2^46; RESOURCE_EXHAUSTED when it cannot be
  // mapped.
  static StatusOr<std::shared_ptr<Slab>> Create(uint64_t bytes);
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // Null when no hole is large enough. REQUIRES: bytes > 0.
  std::shared_ptr<Slot> Allocate(uint64_t bytes);

  uint64_t bytes() const { return bytes_; }
  uint64_t used() const;

  // Free holes lie apart, inside the slab, and are what is not used. Error: INTERNAL.
  Status CheckIntegrity() const;

 private:
  friend class Slot;

  Slab(int fd, std::byte* base, uint64_t bytes);
  void Free(uint64_t offset, uint64_t bytes);
  void AddHole(uint64_t offset, uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveHole(uint64_t offset, uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int fd_;
  std::byte* const base_;
  const uint64_t bytes_;
  mutable Mutex mutex_;
  uint64_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, uint64_t> holes_ ABSL_GUARDED_BY(mutex_);                     // offset -> size
  std::set<std::pair<uint64_t, uint64_t>> holes_by_size_ ABSL_GUARDED_BY(mutex_);  // size, offset
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_SLAB_H_
