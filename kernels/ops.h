// One table of operators per instruction set; the model runner calls only through it.
//
// All tables give the same bits (the numerics `cpu-f32-r1`). No operator allocates, locks or
// waits; shapes are the caller's promise and are not checked again.
// Concurrency: the tables are immutable.
#ifndef PAGODA_KERNELS_OPS_H_
#define PAGODA_KERNELS_OPS_H_

#include <string_view>

#include "kernels/attention/attention.h"
#include "kernels/attention/merge.h"
#include "kernels/base/kernel_status.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/kv/write_kv.h"
#include "kernels/linear/linear.h"
#include "kernels/norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/sampling/row_stats.h"
#include "kernels/weights/packed_matrix.h"

namespace pagoda::kernels {

// Raised whenever any output bit may change; enters every block's identity.
inline constexpr const char* kNumericsF32 = "cpu-f32-r1";

struct Ops {
  const char* isa;  // "scalar" or "avx2"
  void (*dequantize_row)(const PackedMatrix& matrix, int32_t row, float* out);
  void (*linear)(const LinearParams& params);
  void (*rms_norm)(const RmsNormParams& params);
  void (*rope)(const RopeParams& params);
  void (*silu_mul)(const SiluMulParams& params);
  void (*add)(const AddParams& params);
  void (*write_kv)(const WriteKvParams& params);
  void (*attention_split)(const AttentionSplitParams& params);
  void (*attention_merge)(const AttentionMergeParams& params);
  void (*attention_finish)(const AttentionFinishParams& params);
  int32_t (*arg_max)(const float* x, int64_t count);
  bool (*all_finite)(const float* x, int64_t count);
  float (*exp_sum)(const ExpSumParams& params);
};

// The table for "scalar", "avx2" or "auto" (the fastest that this CPU runs, at least AVX2).
// Errors: kUnknownIsa; kIsaUnavailable, also for "auto" on a CPU below x86-64-v3: serving needs
// it, and "scalar" is the reference, far too slow to be chosen silently.
KernelStatus SelectOps(std::string_view isa, const Ops** ops);

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_OPS_H_
