// The scalar arithmetic that every ISA must reproduce bit for bit (README.md, "Numbers").
//
// Concurrency: pure functions.
#ifndef PAGODA_KERNELS_BASE_NUMERIC_H_
#define PAGODA_KERNELS_BASE_NUMERIC_H_

#include <cstdint>
#include <cstring>

#include "kernels/base/inline.h"

namespace pagoda::kernels {

// Row sums use this many virtual lanes: element i belongs to lane i mod 16.
inline constexpr int32_t kSumLanes = 16;

PAGODA_KERNELS_INLINE int32_t Min(int32_t a, int32_t b) { return a < b ? a : b; }
PAGODA_KERNELS_INLINE int32_t Max(int32_t a, int32_t b) { return a > b ? a : b; }

PAGODA_KERNELS_INLINE uint32_t FloatBits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

PAGODA_KERNELS_INLINE float BitsFloat(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// a * b + c, rounded once. Without -mfma this is libm's fmaf, which IEEE 754 fixes to the bit
// (in hardware or in software), so it is no exception to "no libm".
PAGODA_KERNELS_INLINE float Fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

// IEEE half to float; exact. Signalling NaNs come out quiet, as vcvtph2ps gives them.
PAGODA_KERNELS_INLINE float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 31u;
  const uint32_t mantissa = half & 1023u;
  if (exponent == 31) {
    const uint32_t quiet = mantissa == 0 ? 0 : 0x400000u;
    return BitsFloat(sign | 0x7F800000u | quiet | (mantissa << 13));
  }
  if (exponent == 0) {  // zero and denormals: mantissa * 2^-24 is exact in fp32
    const float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8f;
    return BitsFloat(sign | FloatBits(magnitude));
  }
  return BitsFloat(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

PAGODA_KERNELS_INLINE float Bf16ToFloat(uint16_t bf16) {
  return BitsFloat(static_cast<uint32_t>(bf16) << 16);
}

// Round to nearest even on the integer; NaN stays NaN (quiet, upper payload kept).
PAGODA_KERNELS_INLINE uint16_t FloatToBf16(float x) {
  const uint32_t bits = FloatBits(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// x / 2^shift, rounded to nearest even; shift in [1, 24], x < 2^31.
PAGODA_KERNELS_INLINE uint32_t RoundedShift(uint32_t x, uint32_t shift) {
  return (x + ((1u << (shift - 1)) - 1) + ((x >> shift) & 1u)) >> shift;
}

// Float to IEEE half by round to nearest even on the integer: magnitudes from 65520 on become
// infinity, those up to 2^-25 zero. NaN stays NaN (quiet, upper payload kept). Gives the bits of
// vcvtps2ph.
PAGODA_KERNELS_INLINE uint16_t FloatToHalf(float x) {
  const uint32_t bits = FloatBits(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t half;
  if (magnitude > 0x7F800000u) {
    half = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
  } else if (magnitude >= 0x47800000u) {  // 2^16 and above
    half = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {  // from 2^-14 on: normal; may round up to infinity
    half = RoundedShift(magnitude, 13) - (112u << 10);
  } else if (magnitude >= 0x33000000u) {  // from 2^-25 on: a multiple of 2^-24
    half = RoundedShift((magnitude & 0x7FFFFFu) | 0x800000u, 126u - (magnitude >> 23));
  } else {
    half = 0;
  }
  return static_cast<uint16_t>(sign | half);
}

// exp's constants: Cephes expf (ln2 in two parts, a polynomial on [-ln2/2, ln2/2]).
inline constexpr float kExpMin = -87.0f;  // smaller arguments give exp(-87)
inline constexpr float kLog2e = 1.44269504088896341f;
inline constexpr float kRoundBias = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
inline constexpr float kNegLn2Hi = -0.693359375f;
inline constexpr float kNegLn2Lo = 2.12194440e-4f;
inline constexpr float kExpP0 = 1.9875691500e-4f;
inline constexpr float kExpP1 = 1.3981999507e-3f;
inline constexpr float kExpP2 = 8.3334519073e-3f;
inline constexpr float kExpP3 = 4.1665795894e-2f;
inline constexpr float kExpP4 = 1.6666665459e-1f;
inline constexpr float kExpP5 = 5.0000001201e-1f;

// e^x within 1 ulp for x in [-87, 88]; smaller x gives exp(-87); NaN stays the same NaN.
PAGODA_KERNELS_INLINE float Exp(float x) {
  const float clamped = kExpMin > x ? kExpMin : x;
  const float biased = Fma(clamped, kLog2e, kRoundBias);
  const float n = biased - kRoundBias;
  float r = Fma(n, kNegLn2Hi, clamped);
  r = Fma(n, kNegLn2Lo, r);
  float p = Fma(kExpP0, r, kExpP1);
  p = Fma(p, r, kExpP2);
  p = Fma(p, r, kExpP3);
  p = Fma(p, r, kExpP4);
  p = Fma(p, r, kExpP5);
  p = Fma(p, r, 1.0f);
  const float y = Fma(p, r, 1.0f);
  // The low bits of `biased` hold n: shifting them to the exponent multiplies by 2^n.
  const float scaled = BitsFloat(FloatBits(y) + (FloatBits(biased) << 23));
  return x != x ? x : scaled;
}

// Folds the 16 lanes: lane j += lane j + 8, then + 4, + 2, + 1.
PAGODA_KERNELS_INLINE float FoldLanes(const float* lanes) {
  float fold[8];
  for (int j = 0; j < 8; ++j) fold[j] = lanes[j] + lanes[j + 8];
  for (int j = 0; j < 4; ++j) fold[j] = fold[j] + fold[j + 4];
  for (int j = 0; j < 2; ++j) fold[j] = fold[j] + fold[j + 2];
  return fold[0] + fold[1];
}

}  // namespace pagoda::kernels

#endif  // PAGODA_KERNELS_BASE_NUMERIC_H_
