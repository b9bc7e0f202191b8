// Two ways through the same chain per output:
//  - up to 4 tokens: weights are dequantised in registers and used at once. One or two tokens walk
//    three or two row groups together, or the latency of their few chains would bound them.
//  - more tokens, or F32 weights: a row group is dequantised into an L1 buffer of at most
//    kChunkCols inputs, then tiles of up to 6 tokens (12 accumulators of 16 registers) run over
//    it. Between chunks the accumulators rest in y, which is exact.
#include "kernels/base/avx2.h"
#include "kernels/linear/linear.h"
#include "kernels/weights/block_avx2.h"

namespace pagoda::kernels::avx2 {
namespace {

constexpr int32_t kRegisterTokens = 4;
constexpr int32_t kTileTokens = 6;
// 20 KiB of weights beside 7.5 KiB of x in an L1 of 32 KiB or more.
constexpr int32_t kChunkCols = 320;
// The hardware prefetcher loses a stream that is computed on for long between its lines.
constexpr int64_t kPrefetchBytes = 4096;

// The 16 sums of one token and row group.
struct Sums {
  __m256 low, high;
};

// `valid` < 16 in the last row group only.
PAGODA_KERNELS_INLINE Sums LoadSums(const float* y, int32_t valid) {
  if (valid == kGroupRows) return {_mm256_loadu_ps(y), _mm256_loadu_ps(y + 8)};
  return {_mm256_maskload_ps(y, LanesBelow(valid)),
          _mm256_maskload_ps(y + 8, LanesBelow(valid - 8))};
}

PAGODA_KERNELS_INLINE void StoreSums(float* y, int32_t valid, Sums sums) {
  if (valid == kGroupRows) {
    _mm256_storeu_ps(y, sums.low);
    _mm256_storeu_ps(y + 8, sums.high);
    return;
  }
  _mm256_maskstore_ps(y, LanesBelow(valid), sums.low);
  _mm256_maskstore_ps(y + 8, LanesBelow(valid - 8), sums.high);
}

PAGODA_KERNELS_INLINE int32_t ValidRows(const LinearParams& p, int32_t group) {
  return Min(kGroupRows, p.weights.rows - group * kGroupRows);
}

PAGODA_KERNELS_INLINE void PrefetchBlock(const uint8_t* block, int64_t ahead, int32_t bytes) {
  // Integer arithmetic: the address may lie behind the matrix, where a prefetch does no harm.
  const auto at = reinterpret_cast<uintptr_t>(block) + static_cast<uintptr_t>(ahead);
  for (int32_t i = 0; i < bytes; i += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(at + static_cast<uintptr_t>(i)), _MM_HINT_T0);
  }
}

// Row groups [group, group + kGroups) for all tokens, of which there are kTokens.
template <typename Block, int kGroups, int kTokens>
void InRegisters(const LinearParams& p, int32_t group) {
  const int64_t group_bytes = int64_t{p.weights.cols} / kBlockCols * Block::kBytes;
  const uint8_t* weights = p.weights.data + group * group_bytes;
  const float* x[kTokens];
#pragma GCC unroll 8
  for (int c = 0; c < kTokens; ++c) x[c] = p.x + c * p.x_stride;
  Sums sums[kGroups][kTokens];
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 8
    for (int c = 0; c < kTokens; ++c) sums[g][c] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  }
  int64_t first = 0;
  for (int64_t at = 0; at < group_bytes; at += Block::kBytes, first += kBlockCols) {
    // Behind this group's end the stream goes on where the next call's same group begins.
    const bool inside = at + kPrefetchBytes < group_bytes;
    const int64_t ahead = inside ? kPrefetchBytes : kPrefetchBytes + (kGroups - 1) * group_bytes;
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) {
      const uint8_t* block = weights + g * group_bytes + at;
      PrefetchBlock(block, ahead, Block::kBytes);
      Block::ForEachInput(
          block, [&](int32_t k, __m256 low, __m256 high) __attribute__((always_inline)) {
#pragma GCC unroll 8
            for (int c = 0; c < kTokens; ++c) {
              const __m256 input = _mm256_broadcast_ss(x[c] + first + k);
              sums[g][c].low = _mm256_fmadd_ps(low, input, sums[g][c].low);
              sums[g][c].high = _mm256_fmadd_ps(high, input, sums[g][c].high);
            }
          });
    }
  }
  for (int g = 0; g < kGroups; ++g) {
    float* y = p.y + (group + g) * kGroupRows;
    for (int c = 0; c < kTokens; ++c) {
      StoreSums(y + c * p.y_stride, ValidRows(p, group + g), sums[g][c]);
    }
  }
}

template <typename Block, int kGroups, int kTokens>
void EveryGroup(const LinearParams& p) {
  int32_t group = p.group_begin;
  for (; group + kGroups <= p.group_end; group += kGroups) {
    InRegisters<Block, kGroups, kTokens>(p, group);
  }
  for (; group < p.group_end; ++group) InRegisters<Block, 1, kTokens>(p, group);
}

template <typename Block>
void FewTokens(const LinearParams& p) {
  switch (p.tokens) {
    case 1:
      return EveryGroup<Block, 3, 1>(p);
    case 2:
      return EveryGroup<Block, 2, 2>(p);
    case 3:
      return EveryGroup<Block, 1, 3>(p);
    default:
      return EveryGroup<Block, 1, 4>(p);
  }
}

// One row group's weights of consecutive inputs, [count][16], from input `first` on.
struct Chunk {
  const float* weights;
  int32_t first, count;
};

// Continues the chains of kTokens tokens over a chunk.
template <int kTokens>
void Tile(const LinearParams& p, const Chunk& chunk, int32_t group, int32_t token) {
  const float* x = p.x + token * p.x_stride + chunk.first;
  float* y = p.y + token * p.y_stride + group * kGroupRows;
  const int32_t valid = ValidRows(p, group);
  Sums sums[kTokens];
#pragma GCC unroll 8
  for (int c = 0; c < kTokens; ++c) {
    sums[c] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    if (chunk.first > 0) sums[c] = LoadSums(y + c * p.y_stride, valid);
  }
  const float* w = chunk.weights;
  for (int32_t k = 0; k < chunk.count; ++k, w += kGroupRows) {
    const __m256 low = _mm256_load_ps(w), high = _mm256_load_ps(w + 8);
#pragma GCC unroll 8
    for (int c = 0; c < kTokens; ++c) {
      const __m256 input = _mm256_broadcast_ss(x + c * p.x_stride + k);
      sums[c].low = _mm256_fmadd_ps(low, input, sums[c].low);
      sums[c].high = _mm256_fmadd_ps(high, input, sums[c].high);
    }
  }
#pragma GCC unroll 8
  for (int c = 0; c < kTokens; ++c) StoreSums(y + c * p.y_stride, valid, sums[c]);
}

using TileFunction = void (*)(const LinearParams&, const Chunk&, int32_t, int32_t);
constexpr TileFunction kTiles[kTileTokens] = {Tile<1>, Tile<2>, Tile<3>, Tile<4>, Tile<5>, Tile<6>};

// All tokens over one chunk, in tiles of nearly equal width: 7 tokens are 4 + 3, not 6 + 1.
void EveryTile(const LinearParams& p, const Chunk& chunk, int32_t group) {
  int32_t tiles = (p.tokens + kTileTokens - 1) / kTileTokens;
  for (int32_t token = 0; token < p.tokens; --tiles) {
    const int32_t width = (p.tokens - token + tiles - 1) / tiles;
    kTiles[width - 1](p, chunk, group, token);
    token += width;
  }
}

// Inputs per chunk: equal chunks of whole blocks, at most kChunkCols.
int32_t ChunkCols(int32_t cols) {
  const int32_t chunks = (cols + kChunkCols - 1) / kChunkCols;
  const int32_t even = (cols + chunks - 1) / chunks;
  return (even + kBlockCols - 1) / kBlockCols * kBlockCols;
}

template <typename Block>
void ManyTokens(const LinearParams& p) {
  const int32_t cols = p.weights.cols, step = ChunkCols(cols);
  alignas(64) float buffer[kChunkCols * kGroupRows];
  const uint8_t* block =
      p.weights.data + int64_t{p.group_begin} * (cols / kBlockCols) * Block::kBytes;
  for (int32_t group = p.group_begin; group < p.group_end; ++group) {
    for (int32_t first = 0; first < cols; first += step) {
      const int32_t count = Min(step, cols - first);
      for (int32_t i = 0; i < count; i += kBlockCols, block += Block::kBytes) {
        PrefetchBlock(block, kPrefetchBytes, Block::kBytes);
        float* to = buffer + i * kGroupRows;
        Block::ForEachInput(
            block, [&](int32_t k, __m256 low, __m256 high) __attribute__((always_inline)) {
              _mm256_store_ps(to + k * kGroupRows, low);
              _mm256_store_ps(to + k * kGroupRows + 8, high);
            });
      }
      EveryTile(p, {buffer, first, count}, group);
    }
  }
}

void Quantised(const LinearParams& p, void (*few)(const LinearParams&),
               void (*many)(const LinearParams&)) {
  if (p.tokens <= kRegisterTokens) {
    few(p);
  } else {
    many(p);
  }
}

// F32 weights lie as a chunk does. Chunks only bound what the tiles read again and again.
void Float(const LinearParams& p) {
  const int32_t cols = p.weights.cols;
  const auto* weights = reinterpret_cast<const float*>(p.weights.data);
  for (int32_t group = p.group_begin; group < p.group_end; ++group) {
    const float* row_group = weights + int64_t{group} * cols * kGroupRows;
    for (int32_t first = 0; first < cols; first += kChunkCols) {
      const int32_t count = Min(kChunkCols, cols - first);
      EveryTile(p, {row_group + int64_t{first} * kGroupRows, first, count}, group);
    }
  }
}

}  // namespace

void Linear(const LinearParams& p) {
  if (p.tokens <= 0) return;
  switch (p.weights.type) {
    case WeightType::kQ4_1:
      return Quantised(p, FewTokens<BlockQ4_1>, ManyTokens<BlockQ4_1>);
    case WeightType::kQ8_0:
      return Quantised(p, FewTokens<BlockQ8_0>, ManyTokens<BlockQ8_0>);
    case WeightType::kF32:
      return Float(p);
  }
}

}  // namespace pagoda::kernels::avx2
