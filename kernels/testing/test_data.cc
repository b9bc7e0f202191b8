#include "kernels/testing/test_data.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace pagoda::kernels::testing {
namespace {

// A finite half in about [2^-10, 2^-5], or a negated one.
uint16_t RandomScale(TestRandom& random, bool may_be_negative) {
  const uint64_t bits = random.Next();
  const auto exponent = static_cast<uint16_t>(5 + bits % 5);
  const auto mantissa = static_cast<uint16_t>((bits >> 8) & 1023);
  const bool negative = may_be_negative && (bits >> 20) % 2 == 1;
  return static_cast<uint16_t>((negative ? 0x8000 : 0) | (exponent << 10) | mantissa);
}

void AppendHalf(std::vector<uint8_t>& out, uint16_t half) {
  out.push_back(static_cast<uint8_t>(half & 255));
  out.push_back(static_cast<uint8_t>(half >> 8));
}

void AppendQ4_1(TestRandom& random, TestMatrix& matrix) {
  const uint16_t d = RandomScale(random, true), m = RandomScale(random, true);
  AppendHalf(matrix.gguf, d);
  AppendHalf(matrix.gguf, m);
  uint8_t q[32];
  for (uint8_t& value : q) value = static_cast<uint8_t>(random.Next() % 16);
  for (int i = 0; i < 16; ++i) matrix.gguf.push_back(static_cast<uint8_t>(q[i] | q[i + 16] << 4));
  for (const uint8_t value : q) matrix.weights.push_back(value * HalfValue(d) + HalfValue(m));
}

void AppendQ8_0(TestRandom& random, TestMatrix& matrix) {
  const uint16_t d = RandomScale(random, true);
  AppendHalf(matrix.gguf, d);
  for (int i = 0; i < 32; ++i) {
    const auto q = static_cast<int8_t>(random.Next());
    matrix.gguf.push_back(static_cast<uint8_t>(q));
    matrix.weights.push_back(q * HalfValue(d));
  }
}

void AppendF32(TestRandom& random, TestMatrix& matrix) {
  const float w = random.Normal();
  uint8_t bytes[4];
  std::memcpy(bytes, &w, 4);
  matrix.gguf.insert(matrix.gguf.end(), bytes, bytes + 4);
  matrix.weights.push_back(w);
}

}  // namespace

uint64_t TestRandom::Next() {
  uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

float TestRandom::Uniform(float low, float high) {
  return low + (high - low) * (static_cast<float>(Next() >> 40) / 16777216.0f);
}

float TestRandom::Normal() {
  float sum = 0;
  for (int i = 0; i < 12; ++i) sum += Uniform(-0.5f, 0.5f);
  return sum;
}

std::vector<float> TestRandom::Normals(size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = Normal();
  return values;
}

AlignedBytes::AlignedBytes(size_t bytes) {
  const size_t rounded = (bytes + 63) / 64 * 64;
  data_.reset(static_cast<uint8_t*>(std::aligned_alloc(64, rounded)));
  std::memset(data_.get(), 0xFF, rounded);
}

void AlignedBytes::Free::operator()(uint8_t* data) const { std::free(data); }

double HalfValue(uint16_t half) {
  const int exponent = (half >> 10) & 31, mantissa = half & 1023;
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TestMatrix MakeMatrix(WeightType type, int32_t rows, int32_t cols, uint64_t seed) {
  TestRandom random(seed);
  TestMatrix matrix;
  for (int32_t r = 0; r < rows; ++r) {
    const int32_t steps = type == WeightType::kF32 ? cols : cols / 32;
    for (int32_t i = 0; i < steps; ++i) {
      if (type == WeightType::kQ4_1) AppendQ4_1(random, matrix);
      if (type == WeightType::kQ8_0) AppendQ8_0(random, matrix);
      if (type == WeightType::kF32) AppendF32(random, matrix);
    }
  }
  int64_t bytes = 0;
  if (!PackedBytes(type, rows, cols, &bytes).ok()) std::abort();
  matrix.storage = std::make_shared<AlignedBytes>(bytes);
  const auto gguf_bytes = static_cast<int64_t>(matrix.gguf.size());
  if (!PackRowGroups(type, rows, cols, matrix.gguf.data(), gguf_bytes, 0, RowGroups(rows),
                     matrix.storage->data())
           .ok()) {
    std::abort();
  }
  matrix.packed = {type, rows, cols, matrix.storage->data()};
  return matrix;
}

std::string BitDifference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return "different sizes";
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) {
      char text[128];
      std::snprintf(text, sizeof(text), "element %zu: %a and %a", i, a[i], b[i]);
      return text;
    }
  }
  return "";
}

const Ops& ScalarOps() {
  const Ops* ops = nullptr;
  if (!SelectOps("scalar", &ops).ok()) std::abort();
  return *ops;
}

const Ops* Avx2Ops() {
  const Ops* ops = nullptr;
  return SelectOps("avx2", &ops).ok() ? ops : nullptr;
}

std::vector<const Ops*> EveryOps() {
  std::vector<const Ops*> all = {&ScalarOps()};
  if (Avx2Ops() != nullptr) all.push_back(Avx2Ops());
  return all;
}

}  // namespace pagoda::kernels::testing
