// Seeded inputs and bit comparisons shared by the kernel tests.
//
// Concurrency: each object belongs to one test.
#ifndef PAGODA_KERNELS_TESTING_TEST_DATA_H_
#define PAGODA_KERNELS_TESTING_TEST_DATA_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/weights/packed_matrix.h"

namespace pagoda::kernels::testing {

// SplitMix64 (Steele, Lea, Flood 2014): the same stream on every machine.
class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  float Uniform(float low, float high);
  // Roughly normal, standard deviation 1.
  float Normal();
  std::vector<float> Normals(size_t count);

 private:
  uint64_t state_;
};

// 64-byte aligned bytes, all 0xFF (a NaN in every float format) until written.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t bytes);
  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(uint8_t* data) const;
  };
  std::unique_ptr<uint8_t, Free> data_;
};

// A GGUF tensor of random blocks, packed, with what its format says each weight is worth.
struct TestMatrix {
  PackedMatrix packed;
  std::vector<double> weights;  // [rows][cols], exact
  std::vector<uint8_t> gguf;
  std::shared_ptr<AlignedBytes> storage;
};
TestMatrix MakeMatrix(WeightType type, int32_t rows, int32_t cols, uint64_t seed);
double HalfValue(uint16_t half);  // by ldexp, independent of the kernels

// "" when both have the same bits everywhere, else the first difference in words.
std::string BitDifference(const std::vector<float>& a, const std::vector<float>& b);

const Ops& ScalarOps();
// Null on a CPU without AVX2.
const Ops* Avx2Ops();
// All that this CPU runs.
std::vector<const Ops*> EveryOps();

}  // namespace pagoda::kernels::testing

#endif  // PAGODA_KERNELS_TESTING_TEST_DATA_H_
