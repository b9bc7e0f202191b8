#include "kernels/ops.h"

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

}  // namespace

KernelStatus SelectOps(std::string_view isa, const Ops** ops) {
  if (isa == "scalar" || isa == "auto") {
    *ops = &kScalarOps;
    return {};
  }
  if (isa != "avx2") return {KernelCode::kUnknownIsa, "isa", 0, 0};
  return {KernelCode::kIsaUnavailable, "isa", 0, 0};
}

}  // namespace pagoda::kernels
