// Operators on single elements: the gated activation and the residual addition.
//
// Concurrency: calls that write disjoint elements may run in parallel.
#ifndef PAGODA_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
#define PAGODA_KERNELS_ELEMENTWISE_ELEMENTWISE_H_

#include <cstdint>

namespace pagoda::kernels {

// y = (g * sigmoid(g)) * up with e = exp(-|g|) and sigmoid(g) = (g >= 0 ? 1 : e) / (1 + e): one
// divide, no overflow; NaN gives NaN.
struct SiluMulParams {
  const float* gate = nullptr;  // [rows][cols]
  int64_t gate_stride = 0;      // floats between rows
  const float* up = nullptr;    // [rows][cols]
  int64_t up_stride = 0;
  float* y = nullptr;  // [rows][cols]; may be gate or up
  int64_t y_stride = 0;
  int32_t rows = 0;
  int32_t cols = 0;  // any number; a caller may pass a range of columns
};

// x[i] = x[i] + y[i]
struct AddParams {
  float* x = nullptr;        // [count]
  const float* y = nullptr;  // [count]
  int64_t count = 0;
};

namespace scalar {
void SiluMul(const SiluMulParams& params);
void Add(const AddParams& params);
}  // namespace scalar
namespace avx2 {
void SiluMul(const SiluMulParams& params);
void Add(const AddParams& params);
}  // namespace avx2

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
