#include "kernels/kv/kv_layout.h"

namespace pagoda::kernels {
namespace {

constexpr int32_t kMaxLayers = 1024;   // above every published model
constexpr int32_t kMaxKvHeads = 1024;  // likewise
constexpr int32_t kDimMultiple = 16;   // two AVX2 vectors of fp32

int64_t AlignUp(int64_t bytes) { return (bytes + kKvAlign - 1) / kKvAlign * kKvAlign; }

// Bytes of an element, 0 when there is no kernel for the type.
int64_t ElementBytes(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::kF32:
      return 4;
    case KvDtype::kBf16:
    case KvDtype::kFp16:
      return 2;
    default:
      return 0;
  }
}

KernelStatus CheckSpec(const KvSpec& spec) {
  const int32_t tokens = spec.block_tokens;
  if (tokens < 16 || tokens > kMaxBlockTokens || (tokens & (tokens - 1)) != 0) {
    return {KernelCode::kNotPowerOfTwo, "block_tokens", tokens, kMaxBlockTokens};
  }
  if (spec.head_dim < 1 || spec.head_dim > kMaxHeadDim) {
    return {KernelCode::kOutOfRange, "head_dim", spec.head_dim, kMaxHeadDim};
  }
  if (spec.head_dim % kDimMultiple != 0) {
    return {KernelCode::kNotMultiple, "head_dim", spec.head_dim, kDimMultiple};
  }
  if (spec.num_layers < 1 || spec.num_layers > kMaxLayers) {
    return {KernelCode::kOutOfRange, "num_layers", spec.num_layers, kMaxLayers};
  }
  if (spec.num_kv_heads < 1 || spec.num_kv_heads > kMaxKvHeads) {
    return {KernelCode::kOutOfRange, "num_kv_heads", spec.num_kv_heads, kMaxKvHeads};
  }
  if (ElementBytes(spec.k_dtype) == 0) return {KernelCode::kUnsupported, "k_dtype", 0, 0};
  if (ElementBytes(spec.v_dtype) == 0) return {KernelCode::kUnsupported, "v_dtype", 0, 0};
  return {};
}

// Appends the slices of one region (all heads of a layer) and returns where the next one starts.
// The types built so far have no scales, so a region is its data alone.
int64_t AddRegion(const KvSpec& spec, KvDtype dtype, int64_t offset, std::vector<KvSlice>* out) {
  const int64_t bytes = AlignUp(ElementBytes(dtype) * spec.head_dim * spec.block_tokens);
  for (int32_t head = 0; head < spec.num_kv_heads; ++head) {
    out->push_back({offset + head * bytes, offset + spec.num_kv_heads * bytes, dtype});
  }
  return offset + spec.num_kv_heads * bytes;
}

}  // namespace

KernelStatus BuildKvLayout(const KvSpec& spec, KvLayout* layout) {
  const KernelStatus check = CheckSpec(spec);
  if (!check.ok()) return check;
  const int64_t elements = int64_t{spec.head_dim} * spec.block_tokens;
  const int64_t layer_bytes = spec.num_kv_heads * (AlignUp(elements * ElementBytes(spec.k_dtype)) +
                                                   AlignUp(elements * ElementBytes(spec.v_dtype)));
  const int64_t block_bytes = layer_bytes * spec.num_layers;
  if (block_bytes > kMaxKvBlockBytes) {
    return {KernelCode::kOutOfRange, "block_bytes", block_bytes, kMaxKvBlockBytes};
  }
  *layout = KvLayout{spec, block_bytes, {}, {}};
  int64_t offset = 0;
  for (int32_t layer = 0; layer < spec.num_layers; ++layer) {
    offset = AddRegion(spec, spec.k_dtype, offset, &layout->k);
    offset = AddRegion(spec, spec.v_dtype, offset, &layout->v);
  }
  return {};
}

const char* KvDtypeName(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::kF32:
      return "f32";
    case KvDtype::kBf16:
      return "bf16";
    case KvDtype::kFp16:
      return "fp16";
    case KvDtype::kFp8E4m3:
      return "fp8_e4m3";
    case KvDtype::kFp8E5m2:
      return "fp8_e5m2";
    case KvDtype::kInt8:
      return "int8";
    case KvDtype::kInt4:
      return "int4";
  }
  return "unknown";
}

}  // namespace pagoda::kernels
