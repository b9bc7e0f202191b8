// What this CPU can run, and the floating-point mode that the kernels need.
//
// Concurrency: detection is pure; SetFloatMode acts on the calling thread only.
#ifndef PAGODA_KERNELS_BASE_ISA_H_
#define PAGODA_KERNELS_BASE_ISA_H_

namespace pagoda::kernels {

// True only when the operating system also saves the registers that the instructions use.
struct CpuFeatures {
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;

  bool HasAvx2Kernels() const { return avx2 && fma && f16c; }
};

CpuFeatures DetectCpu();

// Sets MXCSR to 0x1F80: round to nearest, denormals kept, exceptions masked. Every thread that
// runs kernels calls it once; a library may have changed the mode that the thread inherited.
void SetFloatMode();

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_BASE_ISA_H_
