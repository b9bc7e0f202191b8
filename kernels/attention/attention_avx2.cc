// Query heads walk a block in chunks of up to six: enough independent chains to hide the latency
// of FMA, few enough that all sums stay in registers. K and V are widened in registers.
#include "kernels/attention/attention.h"
#include "kernels/base/avx2.h"

namespace pagoda::kernels::avx2 {
namespace {

constexpr int32_t kChunkQueries = 6;

struct ElementF32 {
  static constexpr int32_t kBytes = 4;
  PAGODA_KERNELS_INLINE __m256 Load8(const uint8_t* from) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(from));
  }
};

struct ElementBf16 {
  static constexpr int32_t kBytes = 2;
  PAGODA_KERNELS_INLINE __m256 Load8(const uint8_t* from) { return Bf16ToFloat8(from); }
};

struct ElementFp16 {
  static constexpr int32_t kBytes = 2;
  PAGODA_KERNELS_INLINE __m256 Load8(const uint8_t* from) { return HalfToFloat8(from); }
};

PAGODA_KERNELS_INLINE void Prefetch(const uint8_t* at) {
  _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T0);
}

// Up to six query heads at one block.
struct Chunk {
  int32_t block_tokens, head_dim;
  const uint8_t* ahead_k;         // K and V of the next block, or null: fetched line by line beside
  const uint8_t* ahead_v;         // the work; a burst of prefetches stalls the loads behind it
  const float* q[kChunkQueries];  // [head_dim]
  float* state[kChunkQueries];
  int32_t seen[kChunkQueries];  // visible slots of the block
  // Scores, then weights; a row ends where the next begins.
  alignas(32) float p[kChunkQueries][kMaxBlockTokens];
};

// p[q][t] = q . k[t] for t in [0, tokens), rounded up to the vectors of a pass; unscaled.
template <typename Element, int kQueries>
void Scores(Chunk& c, const uint8_t* k, int32_t tokens) {
  constexpr int kVectors = kQueries <= 3 ? 2 : 1;
  const int64_t row = int64_t{c.block_tokens} * Element::kBytes;
  const uint8_t* ahead = c.ahead_k;
  for (int32_t t = 0; t < tokens; t += 8 * kVectors) {
    const uint8_t* column = k + int64_t{t} * Element::kBytes;
    __m256 even[kQueries][kVectors], odd[kQueries][kVectors];
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) even[q][i] = odd[q][i] = _mm256_setzero_ps();
    }
    const auto add = [&](int32_t d, __m256(&sums)[kQueries][kVectors])
        __attribute__((always_inline)) {
      __m256 keys[kVectors];
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) {
        keys[i] = Element::Load8(column + i * 8 * Element::kBytes);
      }
#pragma GCC unroll 8
      for (int q = 0; q < kQueries; ++q) {
        const __m256 query = _mm256_broadcast_ss(c.q[q] + d);
#pragma GCC unroll 8
        for (int i = 0; i < kVectors; ++i) {
          sums[q][i] = _mm256_fmadd_ps(query, keys[i], sums[q][i]);
        }
      }
      if (ahead != nullptr) Prefetch(ahead + d * row + t * Element::kBytes);
      column += row;
    };
    for (int32_t d = 0; d < c.head_dim; d += 2) {
      add(d, even);
      add(d + 1, odd);
    }
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) {
        _mm256_store_ps(&c.p[q][t + 8 * i], _mm256_add_ps(even[q][i], odd[q][i]));
      }
    }
  }
}

// o[q][d] = fma(p[q][t], v[t][d], o[q][d]) for t in [begin, end), in passes over 8 * kVectors dims.
template <typename Element, int kQueries, int kVectors>
PAGODA_KERNELS_INLINE int32_t AddValuesFrom(const Chunk& c, int32_t first, int32_t dim,
                                            const uint8_t* v, int32_t begin, int32_t end) {
  const int64_t row = int64_t{c.head_dim} * Element::kBytes;
  for (; dim + 8 * kVectors <= c.head_dim; dim += 8 * kVectors) {
    __m256 o[kQueries][kVectors];
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) {
        o[q][i] = _mm256_loadu_ps(c.state[first + q] + dim + 8 * i);
      }
    }
    const uint8_t* values = v + begin * row + int64_t{dim} * Element::kBytes;
    for (int32_t t = begin; t < end; ++t, values += row) {
      if (c.ahead_v != nullptr) Prefetch(c.ahead_v + t * row + dim * Element::kBytes);
      __m256 value[kVectors];
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) {
        value[i] = Element::Load8(values + i * 8 * Element::kBytes);
      }
#pragma GCC unroll 8
      for (int q = 0; q < kQueries; ++q) {
        const __m256 weight = _mm256_broadcast_ss(&c.p[first + q][t]);
#pragma GCC unroll 8
        for (int i = 0; i < kVectors; ++i) o[q][i] = _mm256_fmadd_ps(weight, value[i], o[q][i]);
      }
    }
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) {
        _mm256_storeu_ps(c.state[first + q] + dim + 8 * i, o[q][i]);
      }
    }
  }
  return dim;
}

// For the queries [first, first + kQueries) of the chunk; head_dim is a multiple of 16.
template <typename Element, int kQueries>
void AddValues(const Chunk& c, int32_t first, const uint8_t* v, int32_t begin, int32_t end) {
  constexpr int kVectors = kQueries == 1 ? 8 : kQueries <= 3 ? 4 : 2;
  const int32_t dim = AddValuesFrom<Element, kQueries, kVectors>(c, first, 0, v, begin, end);
  if constexpr (kVectors > 2) AddValuesFrom<Element, kQueries, 2>(c, first, dim, v, begin, end);
}

using ScoresFunction = void (*)(Chunk&, const uint8_t*, int32_t);
using ValuesFunction = void (*)(const Chunk&, int32_t, const uint8_t*, int32_t, int32_t);
template <typename E>
constexpr ScoresFunction kScores[] = {Scores<E, 1>, Scores<E, 2>, Scores<E, 3>,
                                      Scores<E, 4>, Scores<E, 5>, Scores<E, 6>};
template <typename E>
constexpr ValuesFunction kValues[] = {AddValues<E, 1>, AddValues<E, 2>, AddValues<E, 3>,
                                      AddValues<E, 4>, AddValues<E, 5>, AddValues<E, 6>};

PAGODA_KERNELS_INLINE const ScoresFunction* ScoresOf(KvDtype dtype) {
  if (dtype == KvDtype::kBf16) return kScores<ElementBf16>;
  return dtype == KvDtype::kFp16 ? kScores<ElementFp16> : kScores<ElementF32>;
}

PAGODA_KERNELS_INLINE const ValuesFunction* ValuesOf(KvDtype dtype) {
  if (dtype == KvDtype::kBf16) return kValues<ElementBf16>;
  return dtype == KvDtype::kFp16 ? kValues<ElementFp16> : kValues<ElementF32>;
}

// Scores to weights for one query of the chunk with seen >= 1: scale, maximum, exp, sum.
void Soften(Chunk& c, int32_t query, float scale) {
  float* p = c.p[query];
  float* state = c.state[query];
  float& m = state[AttnMaxAt(c.head_dim)];
  const int32_t seen = c.seen[query];
  const __m256 scales = _mm256_set1_ps(scale), low = _mm256_set1_ps(-__builtin_inff());
  __m256 maxima = low;
  for (int32_t t = 0; t < seen; t += 8) {
    const __m256 mask = _mm256_castsi256_ps(LanesBelow(seen - t));
    const __m256 score = _mm256_mul_ps(_mm256_load_ps(p + t), scales);
    _mm256_store_ps(p + t, score);
    maxima = _mm256_max_ps(_mm256_blendv_ps(low, score, mask), maxima);
  }
  float lanes[8];
  _mm256_storeu_ps(lanes, maxima);
  float block_max = lanes[0];
  for (int j = 1; j < 8; ++j) block_max = lanes[j] > block_max ? lanes[j] : block_max;
  block_max = block_max + 0.0f;
  if (block_max > m) {
    ScaleInPlace(state, AttnMaxAt(c.head_dim), Exp(m - block_max));  // o and the lanes of l
    m = block_max;
  }
  float* sums = state + AttnLanesAt(c.head_dim);
  for (int32_t t = 0; t < seen; t += 8) {
    const __m256 mask = _mm256_castsi256_ps(LanesBelow(seen - t));
    const __m256 e = Exp8(_mm256_sub_ps(_mm256_load_ps(p + t), _mm256_set1_ps(m)));
    const __m256 weight = _mm256_and_ps(e, mask);
    _mm256_store_ps(p + t, weight);
    float* lane = sums + t % kSumLanes;
    _mm256_storeu_ps(lane, _mm256_add_ps(_mm256_loadu_ps(lane), weight));
  }
}

// One block for the first `queries` heads of the chunk.
void Step(const AttentionSplitParams& p, Chunk& c, int32_t queries, const uint8_t* block) {
  int32_t least = c.seen[0], most = c.seen[0];
  for (int32_t q = 1; q < queries; ++q) {
    least = Min(least, c.seen[q]);
    most = Max(most, c.seen[q]);
  }
  if (most == 0) return;
  ScoresOf(p.k.dtype)[queries - 1](c, block + p.k.data, most);
  for (int32_t q = 0; q < queries; ++q) {
    if (c.seen[q] > 0) Soften(c, q, p.scale);
  }
  // Slots that only some of the chunk's rows see are skipped for the others, not multiplied by 0.
  const uint8_t* v = block + p.v.data;
  const ValuesFunction* values = ValuesOf(p.v.dtype);
  values[queries - 1](c, 0, v, 0, least);
  for (int32_t q = 0; q < queries; ++q) {
    if (c.seen[q] > least) values[0](c, q, v, least, c.seen[q]);
  }
}

// The items (row, head) in [first, first + queries) at the block that starts at `slot`.
void StepItems(const AttentionSplitParams& p, Chunk& c, int32_t first, int32_t queries,
               int32_t slot) {
  for (int32_t i = 0; i < queries; ++i) {
    const int32_t row = (first + i) / p.group, head = (first + i) % p.group;
    c.q[i] = p.q + row * p.q_stride + int64_t{head} * p.head_dim;
    c.state[i] = p.states + int64_t{first + i} * AttnStateFloats(p.head_dim);
    c.seen[i] = Max(0, Min(p.block_tokens, p.visible[row] - slot));
  }
  Step(p, c, queries, p.blocks[slot / p.block_tokens]);
}

void Clear(float* state, int32_t head_dim) {
  for (int32_t i = 0; i < AttnMaxAt(head_dim); i += 8) {
    _mm256_storeu_ps(state + i, _mm256_setzero_ps());
  }
  state[AttnMaxAt(head_dim)] = -__builtin_inff();
}

}  // namespace

void AttentionSplit(const AttentionSplitParams& p) {
  const int32_t items = p.rows * p.group;
  const int64_t state_floats = AttnStateFloats(p.head_dim);
  for (int32_t i = 0; i < items; ++i) Clear(p.states + i * state_floats, p.head_dim);
  int32_t visible = 0;
  for (int32_t row = 0; row < p.rows; ++row) visible = Max(visible, p.visible[row]);
  const int32_t begin = p.split * kAttnSplitTokens;
  const int32_t end = Min(visible, begin + kAttnSplitTokens);
  Chunk chunk;
  chunk.block_tokens = p.block_tokens;
  chunk.head_dim = p.head_dim;
  for (int32_t slot = begin; slot < end; slot += p.block_tokens) {
    int32_t chunks = (items + kChunkQueries - 1) / kChunkQueries;
    for (int32_t first = 0; first < items; --chunks) {
      const int32_t queries = (items - first + chunks - 1) / chunks;
      // The first chunk that walks a block fetches the next one for all.
      const bool fetch = first == 0 && slot + p.block_tokens < visible;
      const uint8_t* next = fetch ? p.blocks[slot / p.block_tokens + 1] : nullptr;
      chunk.ahead_k = fetch ? next + p.k.data : nullptr;
      chunk.ahead_v = fetch ? next + p.v.data : nullptr;
      StepItems(p, chunk, first, queries, slot);
      first += queries;
    }
  }
  for (int32_t i = 0; i < items; ++i) {
    float* state = p.states + i * state_floats;
    state[AttnSumAt(p.head_dim)] = FoldLanes(state + AttnLanesAt(p.head_dim));
  }
}

}  // namespace pagoda::kernels::avx2
