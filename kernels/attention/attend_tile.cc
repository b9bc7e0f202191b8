#include "kernels/attention/attend_tile.h"

#include <algorithm>

namespace pagoda::kernels {

void AttendTile(const Ops& ops, const AttendTileParams& p) {
  AttentionSplitParams tile = p.tile;
  const int32_t items = tile.rows * tile.group;
  float* merged = p.scratch;
  tile.states = merged + int64_t{items} * AttnStateFloats(tile.head_dim);
  AttentionClear(merged, items, tile.head_dim);
  const int32_t visible = *std::max_element(tile.visible, tile.visible + tile.rows);
  for (tile.split = 0; tile.split < AttnSplits(visible); ++tile.split) {
    ops.attention_split(tile);
    ops.attention_merge({tile.states, merged, items, tile.head_dim});
  }
  ops.attention_finish({merged, p.out, p.out_stride, tile.rows, tile.group, tile.head_dim});
}

void MergeSplits(const Ops& ops, const MergeSplitsParams& p) {
  const int32_t items = p.rows * p.group;
  const int64_t split_floats = int64_t{items} * AttnStateFloats(p.head_dim);
  AttentionClear(p.scratch, items, p.head_dim);
  for (int32_t split = 0; split < p.splits; ++split) {
    ops.attention_merge({p.states + split * split_floats, p.scratch, items, p.head_dim});
  }
  ops.attention_finish({p.scratch, p.out, p.out_stride, p.rows, p.group, p.head_dim});
}

}  // namespace pagoda::kernels
