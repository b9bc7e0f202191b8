#include "kernels/kv/write_kv.h"

#include <cstring>

#include "kernels/base/numeric.h"

namespace pagoda::kernels {
namespace {

// Element i of `from`, as `convert` stores it, goes to index first + i * stride of `data`.
template <typename Convert>
void Store(uint8_t* data, const float* from, int32_t count, int64_t first, int64_t stride,
           Convert convert) {
  for (int32_t i = 0; i < count; ++i) {
    const auto value = convert(from[i]);
    std::memcpy(data + (first + i * stride) * static_cast<int64_t>(sizeof(value)), &value,
                sizeof(value));
  }
}

void WriteRow(uint8_t* block, const KvSlice& slice, const float* from, int32_t count, int64_t first,
              int64_t stride) {
  uint8_t* data = block + slice.data;
  // Lambdas: what is always inlined cannot be passed as a pointer.
  auto bf16 = [](float x) { return FloatToBf16(x); };
  auto fp16 = [](float x) { return FloatToHalf(x); };
  auto f32 = [](float x) { return x; };
  if (slice.dtype == KvDtype::kBf16) return Store(data, from, count, first, stride, bf16);
  if (slice.dtype == KvDtype::kFp16) return Store(data, from, count, first, stride, fp16);
  Store(data, from, count, first, stride, f32);
}

}  // namespace

void WriteKv(const WriteKvParams& p) {
  const KvSpec& spec = p.layout->spec;
  for (int32_t head = 0; head < spec.num_kv_heads; ++head) {
    const int64_t at = int64_t{head} * spec.head_dim;
    WriteRow(p.block, p.layout->K(p.layer, head), p.k + at, spec.head_dim, p.slot,
             spec.block_tokens);
    WriteRow(p.block, p.layout->V(p.layer, head), p.v + at, spec.head_dim,
             int64_t{p.slot} * spec.head_dim, 1);
  }
}

}  // namespace pagoda::kernels
