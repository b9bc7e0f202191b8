// SmolLM2 against transformers in fp32 (tests/golden/make_greedy_golden.py). Needs
// PAGODA_TEST_MODEL.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "common/base/bytes.h"
#include "common/base/sha256.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "services/worker/testing/runner_harness.h"

namespace pagoda::worker {
namespace {

using testing::RunnerHarness;

// A step whose two best logits are closer than this may differ: the case stops there.
constexpr double kTie = 1e-3;

class SmolLm2ReferenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("PAGODA_TEST_MODEL");
    if (path == nullptr) {
      GTEST_SKIP() << "no SmolLM2: PAGODA_TEST_MODEL does not name SmolLM2-135M-Instruct.Q4_1.gguf";
    }
    gguf_.emplace(model::GgufFile::Open(path).value());
    std::ifstream in(std::string(PAGODA_GOLDEN_FOLDER) + "/smollm2_greedy.json");
    golden_ = nlohmann::json::parse(in);
  }

  std::optional<model::GgufFile> gguf_;
  nlohmann::json golden_;
};

TEST_F(SmolLm2ReferenceTest, GreedyTokensAreThoseOfTransformers) {
  ASSERT_EQ(ToHex(AsBytes(Sha256::Of(gguf_->bytes()))), golden_["model_sha256"]);
  ASSERT_GE(golden_["cases"].size(), 12u);
  const int32_t steps = golden_["steps"];
  RunnerHarness harness(*gguf_, {.threads = 2, .num_blocks = 256, .max_samples = 4});
  std::printf("%-16s %13s %12s %13s\n", "case", "prompt tokens", "equal steps", "least margin");
  for (const nlohmann::json& one : golden_["cases"]) {
    const auto prompt = one["prompt_ids"].get<std::vector<uint32_t>>();
    const auto expected = one["greedy_ids"].get<std::vector<uint32_t>>();
    const auto margins = one["margins"].get<std::vector<double>>();
    const std::string name = one["name"];
    const std::vector<uint32_t> tokens = harness.Greedy(prompt, steps, 512);
    harness.ReleaseAll();
    const auto differs = std::mismatch(tokens.begin(), tokens.end(), expected.begin()).first;
    const auto equal = differs - tokens.begin();
    std::printf("%-16s %13zu %9td/%d %13.4g\n", name.c_str(), prompt.size(), equal, steps,
                *std::min_element(margins.begin(), margins.end()));
    if (equal < steps) {
      EXPECT_LT(margins[equal], kTie) << name << " differs at step " << equal;
    }
  }
}

TEST_F(SmolLm2ReferenceTest, TheScalarReferenceGivesTheBitsOfAvx2) {
  const auto prompt = golden_["cases"][0]["prompt_ids"].get<std::vector<uint32_t>>();
  std::vector<uint32_t> tokens = prompt;
  for (uint32_t token : golden_["cases"][0]["greedy_ids"]) tokens.push_back(token);
  tokens.resize(16);
  const RunnerHarness::Settings small{
      .threads = 2, .num_blocks = 1, .max_tokens = 16, .max_samples = 16};
  RunnerHarness::Settings scalar = small, avx2 = small;
  scalar.isa = "scalar";
  avx2.isa = "avx2";
  EXPECT_EQ(RunnerHarness(*gguf_, scalar).LogitsOf(tokens, 16),
            RunnerHarness(*gguf_, avx2).LogitsOf(tokens, 16));
}

}  // namespace
}  // namespace pagoda::worker
