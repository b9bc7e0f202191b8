// The cosines and sines of rotary position embedding, with the roundings of the reference.
//
// transformers' LlamaRotaryEmbedding computes in fp32: inv_freq = 1 / base^(2i/d), angle =
// position * inv_freq, cos(angle). The same values are rounded to fp32 here; between them stand
// our own double-precision series, so no libm result enters. Concurrency: pure functions.
#ifndef PAGODA_KERNELS_ROPE_ROPE_TABLE_H_
#define PAGODA_KERNELS_ROPE_ROPE_TABLE_H_

#include <cstdint>

namespace pagoda::kernels {

// Positions up to here are exact in fp32.
inline constexpr int32_t kMaxRopePosition = 1 << 24;

// inv_freq: [rotary_dim / 2]. Each power is rounded to fp32, then its reciprocal is.
// REQUIRES: base > 0 and finite, rotary_dim even.
void RopeInvFreq(float base, int32_t rotary_dim, float* inv_freq);

// cos_out, sin_out: [pairs], the nearest fp32 to the cosine and sine of the fp32 product
// position * inv_freq[i] (up to a double-rounding accident of about 1 in 10^8).
// REQUIRES: 0 <= position <= kMaxRopePosition.
void RopeRow(const float* inv_freq, int32_t pairs, int32_t position, float* cos_out,
             float* sin_out);

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_ROPE_ROPE_TABLE_H_
