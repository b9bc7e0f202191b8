#include "kernels/kv/write_kv.h"

#include <cstring>

#include "kernels/base/numeric.h"

namespace pagoda::kernels {
namespace {

// Element i of `from` goes to index first + i * stride of the slice.
void WriteRow(uint8_t* block, const KvSlice& slice, const float* from, int32_t count, int64_t first,
              int64_t stride) {
  uint8_t* data = block + slice.data;
  if (slice.dtype == KvDtype::kBf16) {
    for (int32_t i = 0; i < count; ++i) {
      const uint16_t value = FloatToBf16(from[i]);
      std::memcpy(data + (first + i * stride) * 2, &value, sizeof(value));
    }
    return;
  }
  for (int32_t i = 0; i < count; ++i) {
    std::memcpy(data + (first + i * stride) * 4, &from[i], sizeof(float));
  }
}

}  // namespace

void WriteKv(const WriteKvParams& p) {
  const KvSpec& spec = p.layout->spec;
  for (int32_t head = 0; head < spec.n_kv_heads; ++head) {
    const int64_t at = int64_t{head} * spec.head_dim;
    WriteRow(p.block, p.layout->K(p.layer, head), p.k + at, spec.head_dim, p.slot,
             spec.block_tokens);
    WriteRow(p.block, p.layout->V(p.layer, head), p.v + at, spec.head_dim,
             int64_t{p.slot} * spec.head_dim, 1);
  }
}

}  // namespace pagoda::kernels
