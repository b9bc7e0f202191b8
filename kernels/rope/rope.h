// Rotates query or key heads by their positions, in place.
//
// For each pair (a, b): a' = a * cos - b * sin, b' = b * cos + a * sin; every product and sum is
// rounded (no FMA), as the reference does. Positions reach this operator only through the cos and
// sin rows of rope_table.h. Concurrency: calls on disjoint rows may run in parallel.
#ifndef PAGODA_KERNELS_ROPE_ROPE_H_
#define PAGODA_KERNELS_ROPE_ROPE_H_

#include <cstdint>

namespace pagoda::kernels {

enum class RopeOrder : uint8_t {
  kAdjacent,   // pair i = elements (2i, 2i + 1): GGUF files of the llama family
  kHalfSplit,  // pair i = elements (i, i + rotary_dim / 2): NeoX, Hugging Face files
};

struct RopeParams {
  float* x = nullptr;          // [rows][heads][head_dim], heads contiguous
  int64_t x_stride = 0;        // floats between rows
  const float* cos = nullptr;  // [rows][rotary_dim / 2], contiguous
  const float* sin = nullptr;  // [rows][rotary_dim / 2], contiguous
  int32_t rows = 0;
  int32_t heads = 0;
  int32_t head_dim = 0;
  int32_t rotary_dim = 0;  // even, <= head_dim; elements behind it stay as they are
  RopeOrder order = RopeOrder::kAdjacent;
};

namespace scalar {
void Rope(const RopeParams& params);
}
namespace avx2 {
void Rope(const RopeParams& params);
}

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_ROPE_ROPE_H_
