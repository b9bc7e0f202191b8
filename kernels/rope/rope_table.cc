#include "kernels/rope/rope_table.h"

#include <bit>

namespace pagoda::kernels {
namespace {

constexpr double kRoundBias64 = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer

double NearestInteger(double x) { return (x + kRoundBias64) - kRoundBias64; }

// ln(x), x > 0 and normal: x = m * 2^e with m in [sqrt(1/2), sqrt(2)), then the series of
// 2 atanh((m - 1) / (m + 1)), whose terms fall by 34 each.
double Log(double x) {
  constexpr double kLn2 = 0.69314718055994530942;
  constexpr double kSqrt2 = 1.41421356237309504880;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (m >= kSqrt2) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double s2 = s * s;
  double sum = 0.0;
  for (int k = 27; k >= 3; k -= 2) sum = (sum + 1.0 / k) * s2;
  return exponent * kLn2 + 2.0 * (s + s * sum);
}

// e^x for |x| < 700: Taylor to degree 16 on [-ln2/2, ln2/2].
double Exp64(double x) {
  constexpr double kLn2Hi = 0x1.62e42fefa0000p-1, kLn2Lo = 0x1.cf79abc9e3b39p-40;
  const double n = NearestInteger(x * 1.44269504088896340736);
  const double r = (x - n * kLn2Hi) - n * kLn2Lo;
  double sum = 1.0;
  for (int k = 16; k >= 1; --k) sum = 1.0 + sum * (r / k);
  const auto exponent = static_cast<uint64_t>(static_cast<int64_t>(n) + 1023);
  return sum * std::bit_cast<double>(exponent << 52);
}

struct SinCos {
  double sin, cos;
};

// Taylor to degree 19 and 18 on [-pi/4, pi/4] after a two-part reduction by pi/2. The fused
// multiply-add keeps the reduction exact to 2^-100 for the 25-bit quotients that occur here.
SinCos SinCosOf(double angle) {
  constexpr double kTwoOverPi = 0.63661977236758134308;
  constexpr double kHalfPiHi = 0x1.921fb54442d18p+0, kHalfPiLo = 0x1.1a62633145c07p-54;
  const double n = NearestInteger(angle * kTwoOverPi);
  double r = __builtin_fma(-n, kHalfPiHi, angle);
  r = __builtin_fma(-n, kHalfPiLo, r);
  const double r2 = r * r;
  double sin_sum = 1.0, cos_sum = 1.0;
  for (int k = 18; k >= 2; k -= 2) {
    sin_sum = 1.0 - sin_sum * (r2 / (k * (k + 1)));
    cos_sum = 1.0 - cos_sum * (r2 / (k * (k - 1)));
  }
  const double sin = r * sin_sum, cos = cos_sum;
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return {sin, cos};
    case 1:
      return {cos, -sin};
    case 2:
      return {-sin, -cos};
    default:
      return {-cos, sin};
  }
}

}  // namespace

void RopeInvFreq(float base, int32_t rotary_dim, float* inv_freq) {
  const double log_base = Log(static_cast<double>(base));
  for (int32_t i = 0; i < rotary_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotary_dim);
    const float power = static_cast<float>(Exp64(static_cast<double>(exponent) * log_base));
    inv_freq[i] = 1.0f / power;
  }
}

void RopeRow(const float* inv_freq, int32_t pairs, int32_t position, float* cos_out,
             float* sin_out) {
  for (int32_t i = 0; i < pairs; ++i) {
    const float angle = static_cast<float>(position) * inv_freq[i];
    const SinCos value = SinCosOf(static_cast<double>(angle));
    cos_out[i] = static_cast<float>(value.cos);
    sin_out[i] = static_cast<float>(value.sin);
  }
}

}  // namespace pagoda::kernels
