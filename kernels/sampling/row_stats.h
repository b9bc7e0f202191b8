// What the sampler asks of a row of logits: the best id, whether all is finite, exponentials.
//
// Concurrency: pure functions but for the output they are given.
#ifndef PAGODA_KERNELS_SAMPLING_ROW_STATS_H_
#define PAGODA_KERNELS_SAMPLING_ROW_STATS_H_

#include <cstdint>

namespace pagoda::kernels {

// e[i] = exp((x[i] - max) * scale), exactly 0 by selection where x[i] is -inf (a masked token).
// The result is the sum in 16 virtual lanes (element i in lane i mod 16), folded.
struct ExpSumParams {
  const float* x = nullptr;  // [count]
  int64_t count = 0;
  float max = 0.0f;    // the largest x, so that no exponent is positive
  float scale = 1.0f;  // 1 / temperature, > 0
  float* e = nullptr;  // [count] or null; may be x
};

namespace scalar {
// The id of the largest element; ties go to the lower id. NaN is never chosen; a row without any
// element above -inf gives 0. REQUIRES: 1 <= count < 2^31.
int32_t ArgMax(const float* x, int64_t count);
// False when any element is NaN or infinite.
bool AllFinite(const float* x, int64_t count);
float ExpSum(const ExpSumParams& params);
}  // namespace scalar
namespace avx2 {
int32_t ArgMax(const float* x, int64_t count);
bool AllFinite(const float* x, int64_t count);
float ExpSum(const ExpSumParams& params);
}  // namespace avx2

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_SAMPLING_ROW_STATS_H_
