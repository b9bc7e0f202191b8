#include "kernels/base/numeric.h"
#include "kernels/sampling/row_stats.h"

namespace pagoda::kernels::scalar {

int32_t ArgMax(const float* x, int64_t count) {
  float best = -__builtin_inff();
  int32_t id = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (x[i] > best) {
      best = x[i];
      id = static_cast<int32_t>(i);
    }
  }
  return id;
}

bool AllFinite(const float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if ((FloatBits(x[i]) & 0x7F800000u) == 0x7F800000u) return false;
  }
  return true;
}

float ExpSum(const ExpSumParams& p) {
  float lanes[kSumLanes] = {};
  for (int64_t i = 0; i < p.count; ++i) {
    const bool masked = p.x[i] == -__builtin_inff();
    const float e = masked ? 0.0f : Exp((p.x[i] - p.max) * p.scale);
    lanes[i % kSumLanes] = lanes[i % kSumLanes] + e;
    if (p.e != nullptr) p.e[i] = e;
  }
  return FoldLanes(lanes);
}

}  // namespace pagoda::kernels::scalar
