// SiLU of one element: the scalar operator and the AVX2 operator's tail share it.
//
// Concurrency: a pure function.
#ifndef PAGODA_KERNELS_ELEMENTWISE_SILU_H_
#define PAGODA_KERNELS_ELEMENTWISE_SILU_H_

#include "kernels/base/numeric.h"

namespace pagoda::kernels {

PAGODA_KERNELS_INLINE float Silu(float g) {
  const float e = Exp(BitsFloat(FloatBits(g) | 0x80000000u));  // exp(-|g|)
  const float numerator = g >= 0.0f ? 1.0f : e;
  return g * (numerator / (1.0f + e));
}

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_ELEMENTWISE_SILU_H_
