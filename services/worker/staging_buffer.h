// A bounded supply of block-sized buffers: what is on its way to the store lies here, so that no
// block of the pool is held while a network is slow. When none is left, the push is dropped.
//
// Concurrency: TryTake from any thread; a buffer may be given back (its last owner ends) on any
// thread, also after this object is gone.
#ifndef PAGODA_SERVICES_WORKER_STAGING_BUFFER_H_
#define PAGODA_SERVICES_WORKER_STAGING_BUFFER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "common/base/mutex.h"

namespace pagoda::worker {

class StagingBuffer {
 public:
  // `max_bytes` holds at least one block.
  StagingBuffer(size_t block_bytes, size_t max_bytes);

  // [block_bytes] aligned to 64, unspecified contents; null when all are taken.
  std::shared_ptr<std::byte> TryTake();

  size_t num_slots() const { return num_slots_; }

 private:
  struct Slots {
    Mutex mutex;
    std::vector<std::byte*> free ABSL_GUARDED_BY(mutex);
    size_t num_made ABSL_GUARDED_BY(mutex) = 0;
    ~Slots();
  };

  const size_t block_bytes_;
  const size_t num_slots_;
  std::shared_ptr<Slots> slots_;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_STAGING_BUFFER_H_
