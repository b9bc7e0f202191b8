#include "kernels/ops.h"

#include "kernels/base/isa.h"

namespace pagoda::kernels {
namespace {

constexpr Ops kScalarOps = {
    .isa = "scalar",
    .dequantize_row = DequantizeRow,
    .linear = scalar::Linear,
    .rms_norm = scalar::RmsNorm,
    .rope = scalar::Rope,
    .silu_mul = scalar::SiluMul,
    .add = scalar::Add,
    .write_kv = WriteKv,
    .attention_split = scalar::AttentionSplit,
    .attention_merge = scalar::AttentionMerge,
    .attention_finish = scalar::AttentionFinish,
    .arg_max = scalar::ArgMax,
    .all_finite = scalar::AllFinite,
    .exp_sum = scalar::ExpSum,
};

constexpr Ops kAvx2Ops = {
    .isa = "avx2",
    .dequantize_row = DequantizeRow,
    .linear = avx2::Linear,
    .rms_norm = avx2::RmsNorm,
    .rope = avx2::Rope,
    .silu_mul = avx2::SiluMul,
    .add = avx2::Add,
    .write_kv = WriteKv,
    .attention_split = avx2::AttentionSplit,
    .attention_merge = avx2::AttentionMerge,
    .attention_finish = avx2::AttentionFinish,
    .arg_max = avx2::ArgMax,
    .all_finite = avx2::AllFinite,
    .exp_sum = avx2::ExpSum,
};

}  // namespace

KernelStatus SelectOps(std::string_view isa, const Ops** ops) {
  if (isa == "scalar") {
    *ops = &kScalarOps;
    return {};
  }
  if (isa != "avx2" && isa != "auto") return {KernelCode::kUnknownIsa, "isa", 0, 0};
  if (!DetectCpu().HasAvx2Kernels()) return {KernelCode::kIsaUnavailable, "isa", 0, 0};
  *ops = &kAvx2Ops;
  return {};
}

}  // namespace pagoda::kernels
