// The kernels' error: a code, the field it is about, its value and the limit it broke.
//
// The kernels know no absl; the caller turns this into its own status with KernelStatusText.
// Concurrency: a plain value.
#ifndef PAGODA_KERNELS_BASE_KERNEL_STATUS_H_
#define PAGODA_KERNELS_BASE_KERNEL_STATUS_H_

#include <cstdint>
#include <string>

namespace pagoda::kernels {

enum class KernelCode : uint8_t {
  kOk,
  kOutOfRange,      // `value` lies outside [1, limit]
  kNotMultiple,     // `value` is not a multiple of `limit`
  kNotPowerOfTwo,   // `value` is not a power of two within [16, limit]
  kSizeMismatch,    // `value` bytes were given where `limit` are needed
  kUnsupported,     // the value is known by name but has no kernel yet
  kUnknownIsa,      // the name is none that SelectOps knows
  kIsaUnavailable,  // this CPU (or its kernel's saved state) lacks the instructions
};

struct KernelStatus {
  KernelCode code = KernelCode::kOk;
  const char* field = "";  // a literal
  int64_t value = 0;
  int64_t limit = 0;

  bool ok() const { return code == KernelCode::kOk; }
};

// "cols: 33 is not a multiple of 32"
std::string KernelStatusText(const KernelStatus& status);

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_BASE_KERNEL_STATUS_H_
