// The two ways to run attention over all splits of a tile of query rows.
//
// Prefill: AttendTile walks the splits of one (query tile, kv head) on one thread. Decode over a
// long context: threads call Ops::attention_split for one split each, and when all are done one of
// them calls MergeSplits. Both give the same bits: the same operators in the same order.
// Concurrency: calls with different scratch and output may run in parallel.
#ifndef PAGODA_KERNELS_ATTENTION_ATTEND_TILE_H_
#define PAGODA_KERNELS_ATTENTION_ATTEND_TILE_H_

#include <cstdint>

#include "kernels/ops.h"

namespace pagoda::kernels {

// Floats of scratch for AttendTile: the running states and one split's.
constexpr int64_t AttendTileScratchFloats(int32_t rows, int32_t group, int32_t head_dim) {
  return int64_t{2} * rows * group * AttnStateFloats(head_dim);
}

struct AttendTileParams {
  AttentionSplitParams tile;  // `split` and `states` are set by AttendTile
  float* scratch = nullptr;   // [AttendTileScratchFloats]
  float* out = nullptr;       // [rows][group][head_dim]
  int64_t out_stride = 0;     // floats between rows of out
};

// REQUIRES: every visible[row] >= 1.
void AttendTile(const Ops& ops, const AttendTileParams& params);

struct MergeSplitsParams {
  const float* states = nullptr;  // [splits][rows][group][AttnStateFloats(head_dim)]
  int32_t splits = 0;             // >= 1
  float* scratch = nullptr;       // [rows][group][AttnStateFloats(head_dim)]
  float* out = nullptr;           // [rows][group][head_dim]
  int64_t out_stride = 0;         // floats between rows of out
  int32_t rows = 0;
  int32_t group = 0;
  int32_t head_dim = 0;
};

// REQUIRES: each item has a visible slot in some split.
void MergeSplits(const Ops& ops, const MergeSplitsParams& params);

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_ATTENTION_ATTEND_TILE_H_
