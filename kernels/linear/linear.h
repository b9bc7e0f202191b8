// y = x * W^T in fp32: the linear layers and the head.
//
// Order (the contract): y[m][n] starts at +0 and is one chain acc = fma(w[n][k], x[m][k], acc),
// k ascending. Lanes run over outputs, so neither M, nor the range of row groups, nor the ISA can
// change a bit. Concurrency: calls on disjoint row groups or disjoint x rows may run in parallel.
#ifndef PAGODA_KERNELS_LINEAR_LINEAR_H_
#define PAGODA_KERNELS_LINEAR_LINEAR_H_

#include <cstdint>

#include "kernels/weights/packed_matrix.h"

namespace pagoda::kernels {

struct LinearParams {
  PackedMatrix weights;      // [N][K]
  const float* x = nullptr;  // [tokens][K]
  int64_t x_stride = 0;      // floats between rows of x
  float* y = nullptr;        // [tokens][N]; columns outside the row groups stay untouched
  int64_t y_stride = 0;      // floats between rows of y
  int32_t tokens = 0;        // M, any number
  int32_t group_begin = 0;   // row groups [begin, end) of 16 outputs, at most RowGroups(N)
  int32_t group_end = 0;
};

namespace scalar {
void Linear(const LinearParams& params);
}
namespace avx2 {
void Linear(const LinearParams& params);
}

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_LINEAR_LINEAR_H_
