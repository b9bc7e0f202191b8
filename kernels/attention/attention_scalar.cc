#include <algorithm>
#include <cstring>

#include "kernels/attention/attention.h"
#include "kernels/base/numeric.h"

namespace pagoda::kernels::scalar {
namespace {

float Element(const uint8_t* data, KvDtype dtype, int64_t index) {
  if (dtype == KvDtype::kBf16 || dtype == KvDtype::kFp16) {
    uint16_t value;
    std::memcpy(&value, data + index * 2, sizeof(value));
    return dtype == KvDtype::kBf16 ? Bf16ToFloat(value) : HalfToFloat(value);
  }
  float value;
  std::memcpy(&value, data + index * 4, sizeof(value));
  return value;
}

float Score(const AttentionSplitParams& p, const uint8_t* k, const float* q, int32_t t) {
  float even = 0.0f, odd = 0.0f;
  for (int32_t d = 0; d < p.head_dim; d += 2) {
    even = Fma(q[d], Element(k, p.k.dtype, int64_t{d} * p.block_tokens + t), even);
    odd = Fma(q[d + 1], Element(k, p.k.dtype, int64_t{d + 1} * p.block_tokens + t), odd);
  }
  return (even + odd) * p.scale;
}

// One online-softmax step: the first `seen` slots (>= 1) of a block.
void Step(const AttentionSplitParams& p, const uint8_t* block, const float* q, int32_t seen,
          float* state) {
  float* lanes = state + AttnLanesAt(p.head_dim);
  float& m = state[AttnMaxAt(p.head_dim)];
  float score[kMaxBlockTokens];
  float block_max = -__builtin_inff();
  for (int32_t t = 0; t < seen; ++t) {
    score[t] = Score(p, block + p.k.data, q, t);
    block_max = score[t] > block_max ? score[t] : block_max;
  }
  block_max = block_max + 0.0f;  // -0 becomes +0, so that max has one answer
  if (block_max > m) {
    const float rescale = Exp(m - block_max);
    for (int32_t d = 0; d < p.head_dim; ++d) state[d] = state[d] * rescale;
    for (int32_t j = 0; j < kSumLanes; ++j) lanes[j] = lanes[j] * rescale;
    m = block_max;
  }
  const uint8_t* v = block + p.v.data;
  for (int32_t t = 0; t < seen; ++t) {
    const float weight = Exp(score[t] - m);
    lanes[t % kSumLanes] = lanes[t % kSumLanes] + weight;
    for (int32_t d = 0; d < p.head_dim; ++d) {
      state[d] = Fma(weight, Element(v, p.v.dtype, int64_t{t} * p.head_dim + d), state[d]);
    }
  }
}

void OneHead(const AttentionSplitParams& p, const float* q, int32_t visible, float* state) {
  std::fill(state, state + AttnMaxAt(p.head_dim), 0.0f);
  state[AttnMaxAt(p.head_dim)] = -__builtin_inff();
  const int32_t begin = p.split * kAttnSplitTokens;
  const int32_t end = std::min(visible, begin + kAttnSplitTokens);
  for (int32_t slot = begin; slot < end; slot += p.block_tokens) {
    const int32_t seen = std::min(p.block_tokens, end - slot);
    Step(p, p.blocks[slot / p.block_tokens], q, seen, state);
  }
  state[AttnSumAt(p.head_dim)] = FoldLanes(state + AttnLanesAt(p.head_dim));
}

}  // namespace

void AttentionSplit(const AttentionSplitParams& p) {
  for (int32_t row = 0; row < p.rows; ++row) {
    for (int32_t head = 0; head < p.group; ++head) {
      const float* q = p.q + row * p.q_stride + int64_t{head} * p.head_dim;
      const int64_t item = int64_t{row} * p.group + head;
      OneHead(p, q, p.visible[row], p.states + item * AttnStateFloats(p.head_dim));
    }
  }
}

}  // namespace pagoda::kernels::scalar
