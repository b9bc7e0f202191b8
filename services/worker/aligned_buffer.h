// Private memory for weights and activations: page aligned, zeroed, in huge pages where the system
// gives them.
//
// Concurrency: a plain owner; its bytes follow the rules of who uses them.
#ifndef PAGODA_SERVICES_WORKER_ALIGNED_BUFFER_H_
#define PAGODA_SERVICES_WORKER_ALIGNED_BUFFER_H_

#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "common/base/status.h"

namespace pagoda::worker {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~AlignedBuffer() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }

  // Errors: RESOURCE_EXHAUSTED naming `what` and the size; INVALID_ARGUMENT when bytes < 1.
  static StatusOr<AlignedBuffer> Allocate(int64_t bytes, const char* what) {
    if (bytes < 1) return absl::InvalidArgumentError(std::string(what) + ": no bytes asked for");
    AlignedBuffer buffer;
    void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      return absl::ResourceExhaustedError(std::string(what) + ": cannot allocate " +
                                          std::to_string(bytes) + " bytes");
    }
    madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a hint: fewer TLB misses
    buffer.data_ = static_cast<uint8_t*>(data);
    buffer.bytes_ = static_cast<size_t>(bytes);
    return buffer;
  }

  uint8_t* data() const { return data_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

 private:
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_ALIGNED_BUFFER_H_
