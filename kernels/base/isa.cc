#include "kernels/base/isa.h"

#include <cpuid.h>
#include <xmmintrin.h>

#include <cstdint>

namespace pagoda::kernels {
namespace {

// XCR0, valid only when CPUID says OSXSAVE.
uint64_t ReadXcr0() {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

}  // namespace

CpuFeatures DetectCpu() {
  constexpr uint32_t kLeaf1Fma = 1u << 12, kLeaf1Osxsave = 1u << 27, kLeaf1F16c = 1u << 29;
  constexpr uint32_t kLeaf7Avx2 = 1u << 5;
  constexpr uint64_t kXmmAndYmm = 6;
  CpuFeatures features;
  uint32_t eax, ebx, ecx, edx;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return features;
  if ((ecx & kLeaf1Osxsave) == 0 || (ReadXcr0() & kXmmAndYmm) != kXmmAndYmm) return features;
  features.fma = (ecx & kLeaf1Fma) != 0;
  features.f16c = (ecx & kLeaf1F16c) != 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    features.avx2 = (ebx & kLeaf7Avx2) != 0;
  }
  return features;
}

void SetFloatMode() { _mm_setcsr(0x1F80); }

}  // namespace pagoda::kernels
