// Times of the main operators on the shapes of a small model, one thread.
//
// Weights and KV are spread over more memory than a cache holds, as a whole model's are: a
// benchmark that reuses one layer measures the cache.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "kernels/attention/attend_tile.h"
#include "kernels/testing/test_data.h"

namespace pagoda::kernels {
namespace {

using testing::AlignedBytes;
using testing::TestRandom;

constexpr int64_t kSpreadBytes = int64_t{96} << 20;  // three times a large L3 share
constexpr int32_t kBlockTokens = 32, kHeadDim = 64, kKvHeads = 3, kGroup = 3;

const Ops* Table(int64_t isa) { return isa == 0 ? &testing::ScalarOps() : testing::Avx2Ops(); }

// Arguments: ISA (0 scalar, 1 AVX2), rows N, cols K, tokens M.
void Linear(benchmark::State& state, WeightType type) {
  const Ops* ops = Table(state.range(0));
  if (ops == nullptr) return state.SkipWithError("this CPU has no AVX2");
  const auto rows = static_cast<int32_t>(state.range(1));
  const auto cols = static_cast<int32_t>(state.range(2));
  const auto tokens = static_cast<int32_t>(state.range(3));
  const testing::TestMatrix one = testing::MakeMatrix(type, rows, cols, 1);
  const int64_t bytes = RowGroups(rows) * PackedGroupBytes(type, cols);
  const int64_t copies = (kSpreadBytes + bytes - 1) / bytes;
  AlignedBytes all(copies * bytes);
  for (int64_t i = 0; i < copies; ++i) {
    std::memcpy(all.data() + i * bytes, one.packed.data, bytes);
  }
  const std::vector<float> x = TestRandom(2).Normals(int64_t{tokens} * cols);
  std::vector<float> y(int64_t{tokens} * rows);
  int64_t copy = 0;
  for (auto _ : state) {
    PackedMatrix matrix = one.packed;
    matrix.data = all.data() + copy * bytes;
    copy = (copy + 1) % copies;
    ops->linear({matrix, x.data(), cols, y.data(), rows, tokens, 0, RowGroups(rows)});
    benchmark::DoNotOptimize(y.data());
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["flop/s"] = benchmark::Counter(2.0 * rows * cols * tokens * state.iterations(),
                                                benchmark::Counter::kIsRate);
}

// Arguments: ISA, context, query rows; one layer of SmolLM2-135M, all kv heads.
void Attention(benchmark::State& state, KvDtype dtype) {
  const Ops* ops = Table(state.range(0));
  if (ops == nullptr) return state.SkipWithError("this CPU has no AVX2");
  const auto context = static_cast<int32_t>(state.range(1));
  const auto rows = static_cast<int32_t>(state.range(2));
  KvLayout layout;
  const KvSpec spec = {kBlockTokens, kHeadDim, 30, kKvHeads, dtype, dtype};
  if (!BuildKvLayout(spec, &layout).ok()) return state.SkipWithError("layout");
  const int32_t blocks = (context + kBlockTokens - 1) / kBlockTokens;
  AlignedBytes pool(blocks * layout.block_bytes);
  std::memset(pool.data(), 0, blocks * layout.block_bytes);
  std::vector<const uint8_t*> table(blocks);
  for (int32_t b = 0; b < blocks; ++b) table[b] = pool.data() + b * layout.block_bytes;
  const std::vector<float> q = TestRandom(3).Normals(int64_t{rows} * kKvHeads * kGroup * kHeadDim);
  std::vector<float> out(q.size()), scratch(AttendTileScratchFloats(rows, kGroup, kHeadDim));
  std::vector<int32_t> visible(rows);
  for (int32_t r = 0; r < rows; ++r) visible[r] = context - rows + 1 + r;
  const int64_t stride = kKvHeads * kGroup * kHeadDim;
  int32_t layer = 0;
  for (auto _ : state) {
    for (int32_t head = 0; head < kKvHeads; ++head) {
      const int64_t at = int64_t{head} * kGroup * kHeadDim;
      AttentionSplitParams tile = {layout.K(layer, head),
                                   layout.V(layer, head),
                                   kBlockTokens,
                                   kHeadDim,
                                   table.data(),
                                   q.data() + at,
                                   stride,
                                   rows,
                                   kGroup,
                                   visible.data(),
                                   0.125f,
                                   0,
                                   nullptr};
      AttendTile(*ops, {tile, scratch.data(), out.data() + at, stride});
    }
    layer = (layer + 1) % 30;
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * blocks * layout.block_bytes / 30);
  state.counters["flop/s"] =
      benchmark::Counter(4.0 * rows * kKvHeads * kGroup * kHeadDim * context * state.iterations(),
                         benchmark::Counter::kIsRate);
}

// Argument: ISA. The small operators of one token's layer.
void SmallOps(benchmark::State& state) {
  const Ops* ops = Table(state.range(0));
  if (ops == nullptr) return state.SkipWithError("this CPU has no AVX2");
  std::vector<float> x = TestRandom(1).Normals(576), y(576), weight = TestRandom(2).Normals(576);
  std::vector<float> gate = TestRandom(3).Normals(1536), up = TestRandom(4).Normals(1536);
  for (auto _ : state) {
    ops->rms_norm({x.data(), 576, nullptr, 0, weight.data(), y.data(), 576, 1, 576, 1e-5f});
    ops->silu_mul({gate.data(), 1536, up.data(), 1536, up.data(), 1536, 1, 1536});
    benchmark::DoNotOptimize(up.data());
  }
}

// Argument: ISA. What a greedy and a sampled token cost on a vocabulary of 49,152.
void Sampling(benchmark::State& state) {
  const Ops* ops = Table(state.range(0));
  if (ops == nullptr) return state.SkipWithError("this CPU has no AVX2");
  std::vector<float> x = TestRandom(1).Normals(49152), e(49152);
  for (auto _ : state) {
    benchmark::DoNotOptimize(ops->arg_max(x.data(), 49152));
    benchmark::DoNotOptimize(ops->all_finite(x.data(), 49152));
    benchmark::DoNotOptimize(ops->exp_sum({x.data(), 49152, 6.0f, 1.0f, e.data()}));
  }
}

BENCHMARK_CAPTURE(Linear, q4_1, WeightType::kQ4_1)
    ->Args({0, 576, 576, 1})
    ->ArgsProduct({{1}, {1536}, {576}, {1, 2, 3, 4, 5, 6, 8, 16, 64, 512}})
    ->ArgsProduct({{1}, {576}, {1536}, {1, 4, 8, 512}});
BENCHMARK_CAPTURE(Linear, q8_0, WeightType::kQ8_0)->ArgsProduct({{1}, {49152}, {576}, {1, 4, 8}});
BENCHMARK_CAPTURE(Attention, bf16, KvDtype::kBf16)
    ->Args({0, 512, 1})
    ->ArgsProduct({{1}, {512, 4096}, {1, 16, 32}});
BENCHMARK_CAPTURE(Attention, fp16, KvDtype::kFp16)->ArgsProduct({{1}, {512, 4096}, {1, 16}});
BENCHMARK_CAPTURE(Attention, f32, KvDtype::kF32)->ArgsProduct({{1}, {512, 4096}, {1, 16}});
BENCHMARK(SmallOps)->Arg(0)->Arg(1);
BENCHMARK(Sampling)->Arg(0)->Arg(1);

}  // namespace
}  // namespace pagoda::kernels

BENCHMARK_MAIN();
