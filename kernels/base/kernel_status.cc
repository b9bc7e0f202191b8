#include "kernels/base/kernel_status.h"

namespace pagoda::kernels {

std::string KernelStatusText(const KernelStatus& status) {
  const std::string head = std::string(status.field) + ": ";
  const std::string value = std::to_string(status.value);
  const std::string limit = std::to_string(status.limit);
  switch (status.code) {
    case KernelCode::kOk:
      return "ok";
    case KernelCode::kOutOfRange:
      return head + value + " is outside [1, " + limit + "]";
    case KernelCode::kNotMultiple:
      return head + value + " is not a multiple of " + limit;
    case KernelCode::kNotPowerOfTwo:
      return head + value + " is not a power of two in [16, " + limit + "]";
    case KernelCode::kSizeMismatch:
      return head + value + " bytes given, " + limit + " needed";
    case KernelCode::kUnsupported:
      return head + "no kernel for this type";
    case KernelCode::kUnknownIsa:
      return head + "unknown; one of scalar, avx2, auto";
    case KernelCode::kIsaUnavailable:
      return head + "this CPU lacks AVX2, FMA or F16C (x86-64-v3)";
  }
  return head + "unknown error";
}

}  // namespace pagoda::kernels
