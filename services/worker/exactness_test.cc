// The contract of numerics: a request's logits depend on the request alone, bit for bit.
#include <cstring>

#include "common/base/bytes.h"
#include "common/base/sha256.h"
#include "common/model/testing/tiny_model.h"
#include "gtest/gtest.h"
#include "services/worker/testing/runner_harness.h"

namespace pagoda::worker {
namespace {

using kernels::KvDtype;
using model::TensorType;
using model::testing::TinyModelOptions;
using testing::RunnerHarness;
using testing::SomeTokens;

using Rows = std::vector<std::vector<float>>;

// More than one attention split (256 slots) and no multiple of a block.
constexpr int32_t kTokens = 301;

bool SameBits(const Rows& a, const Rows& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    if (std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) return false;
  }
  return true;
}

struct Case {
  const char* name;
  TinyModelOptions model;
  KvDtype kv;
};

class ExactnessTest : public ::testing::TestWithParam<Case> {
 protected:
  RunnerHarness::Settings Settings(const std::string& isa, int threads) {
    return {.isa = isa, .threads = threads, .kv = GetParam().kv, .num_blocks = 96};
  }

  std::string file_ = model::testing::TinyModel(GetParam().model);
  model::GgufFile gguf_ = model::GgufFile::Parse(file_).value();
  std::vector<uint32_t> tokens_ = SomeTokens(kTokens, GetParam().model.vocabulary);
};

TEST_P(ExactnessTest, LogitsDoNotDependOnChunksThreadsOrInstructionSet) {
  const Rows reference = RunnerHarness(gguf_, Settings("auto", 1)).LogitsOf(tokens_, kTokens);
  for (const char* isa : {"avx2", "scalar"}) {
    for (int threads : {1, 2}) {
      for (int32_t chunk : {1, 7, 64, kTokens}) {
        const Rows rows = RunnerHarness(gguf_, Settings(isa, threads)).LogitsOf(tokens_, chunk);
        EXPECT_TRUE(SameBits(rows, reference))
            << isa << ", " << threads << " threads, chunks of " << chunk;
      }
    }
  }
}

TEST_P(ExactnessTest, LogitsDoNotDependOnBatchMates) {
  const Rows reference = RunnerHarness(gguf_, Settings("auto", 1)).LogitsOf(tokens_, kTokens);
  RunnerHarness harness(gguf_, Settings("auto", 3));
  RunnerHarness::Sequence sequence = harness.NewSequence(kTokens);
  std::vector<RunnerHarness::Sequence> mates;
  for (int i = 0; i < 8; ++i) mates.push_back(harness.NewSequence(200));
  Rows rows;
  // Prefill in uneven chunks, then decode; mates come and go around it in every step.
  for (int32_t at = 0, step = 0; at < kTokens; ++step) {
    const int32_t count = at < 250 ? std::min(250 - at, 90) : 1;
    std::vector<size_t> own;
    for (int i = 0; i < 9; ++i) {
      if (i == step % 9) {
        own.push_back(harness.plan().num_samples);
        harness.Plan(sequence, std::span(tokens_).subspan(at, count), true);
        continue;
      }
      RunnerHarness::Sequence& mate = mates[i % 8];
      const int32_t size = (i + step) % 4;
      if (size == 0 || mate.length + size > 200) continue;
      harness.Plan(mate, SomeTokens(size, GetParam().model.vocabulary, i), false);
    }
    harness.Step();
    for (int32_t i = 0; i < count; ++i) {
      const auto row = harness.runner().logits(static_cast<int32_t>(own[0]) + i);
      rows.emplace_back(row.begin(), row.end());
    }
    at += count;
  }
  EXPECT_TRUE(SameBits(rows, reference));
}

TEST_P(ExactnessTest, LogitsDoNotDependOnWhoComputedThePrefix) {
  RunnerHarness harness(gguf_, Settings("auto", 1));
  const Rows reference = harness.LogitsOf(tokens_, 64);
  RunnerHarness::Sequence first = harness.NewSequence(kTokens);
  harness.Plan(first, tokens_, false);
  harness.Step();
  RunnerHarness::Sequence second = harness.NewSequence(kTokens);
  for (int block = 0; block < 8; ++block) second.blocks[block] = first.blocks[block];
  second.length = 8 * 32;
  harness.Plan(second, std::span(tokens_).subspan(8 * 32), true);
  harness.Step();
  for (int32_t i = 0; i < kTokens - 8 * 32; ++i) {
    const auto row = harness.runner().logits(i);
    EXPECT_TRUE(SameBits({{row.begin(), row.end()}}, {reference[8 * 32 + i]})) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(TinyModels, ExactnessTest,
                         ::testing::Values(Case{"GroupedQ4_1_F32", {}, KvDtype::kF32},
                                           Case{"GroupedQ4_1_Bf16", {}, KvDtype::kBf16},
                                           Case{"GroupedQ4_1_Fp16", {}, KvDtype::kFp16},
                                           Case{"WideHeadsQ8_0_F32",
                                                {.layers = 1,
                                                 .hidden = 96,
                                                 .heads = 3,
                                                 .kv_heads = 1,
                                                 .head_dim = 128,
                                                 .ffn = 96,
                                                 .vocabulary = 300,
                                                 .tied_head = false,
                                                 .weights = TensorType::kQ8_0},
                                                KvDtype::kF32},
                                           Case{"EqualHeadsF32_Bf16",
                                                {.layers = 1,
                                                 .hidden = 64,
                                                 .heads = 2,
                                                 .kv_heads = 2,
                                                 .ffn = 32,
                                                 .vocabulary = 271,
                                                 .weights = TensorType::kF32,
                                                 .embedding = TensorType::kF32},
                                                KvDtype::kBf16}),
                         [](const auto& info) { return info.param.name; });

// The change detector: a digest that differs means that output bits changed, so kNumericsF32 must
// be raised (kernels/ops.h) and the new digest committed with it.
TEST(NumericsTest, LogitsOfTheTinyModelsAreThoseOfThisRevision) {
  EXPECT_STREQ(kernels::kNumericsF32, "cpu-f32-r1");
  const std::pair<KvDtype, std::string> expected[] = {
      {KvDtype::kF32, "b5d177d42a5f4d5e27dd9514ea6fa3bdc5478fffdcca10f7fc283f1f859e246d"},
      {KvDtype::kBf16, "d2fecb99853e042f76bc68a944b74f3173225e18f24f2d248487ac1779a29917"},
      {KvDtype::kFp16, "4755121b1d408c54b8a4978dd55178a8ea7270791138d40fa140fecd76bedcf1"}};
  const std::string file = model::testing::TinyModel({.heads = 6, .kv_heads = 2});
  model::GgufFile gguf = model::GgufFile::Parse(file).value();
  for (const auto& [kv, digest] : expected) {
    Sha256 hash;
    RunnerHarness harness(gguf, {.kv = kv});
    for (const std::vector<float>& row : harness.LogitsOf(SomeTokens(kTokens, 512), kTokens)) {
      hash.Update({reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float)});
    }
    EXPECT_EQ(ToHex(AsBytes(hash.Finish())), digest);
  }
}

}  // namespace
}  // namespace pagoda::worker
