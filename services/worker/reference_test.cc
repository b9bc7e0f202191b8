// Compares with transformers in fp32: what tests/golden/make_greedy_golden.py wrote.
#include <cstdlib>
#include <fstream>

#include "common/base/bytes.h"
#include "common/base/sha256.h"
#include "common/model/testing/tiny_model.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "services/worker/testing/runner_harness.h"

namespace pagoda::worker {
namespace {

using kernels::KvDtype;
using model::TensorType;
using testing::RunnerHarness;

nlohmann::json Golden(const std::string& name) {
  std::ifstream in(std::string(PAGODA_GOLDEN_FOLDER) + "/" + name);
  return nlohmann::json::parse(in);
}

TensorType TypeOf(const std::string& name) {
  return name == "F32" ? TensorType::kF32 : name == "Q4_1" ? TensorType::kQ4_1 : TensorType::kQ8_0;
}

struct Format {
  KvDtype kv;
  float tolerance;
};
// With f32 the sums of a layer are taken in another order there; nothing else may differ. The
// reference caches fp32, so fp16 adds the rounding of its 11 bits, which moves no largest logit
// here. (bf16's 8 bits move some by 0.05, beyond the margin of one.)
constexpr Format kFormats[] = {{KvDtype::kF32, 1e-4f}, {KvDtype::kFp16, 0.03f}};

class ReferenceTest : public ::testing::TestWithParam<Format> {};

TEST_P(ReferenceTest, TinyModelsHaveTheLogitsOfTransformers) {
  const nlohmann::json file_of_cases = Golden("tiny_logits.json");
  ASSERT_EQ(file_of_cases["cases"].size(), 5u);
  for (const nlohmann::json& golden : file_of_cases["cases"]) {
    const nlohmann::json& options = golden["options"];
    SCOPED_TRACE(options.dump());
    model::testing::TinyModelOptions tiny;
    tiny.seed = golden["seed"];
    tiny.hidden = options.value("hidden", tiny.hidden);
    tiny.heads = options["heads"];
    tiny.kv_heads = options["kv-heads"];
    tiny.head_dim = options["head-dim"];
    tiny.tied_head = options["tied-head"] == "true";
    tiny.weights = TypeOf(options["weights"]);
    tiny.embedding = TypeOf(options["embedding"]);
    const std::string file = TinyModel(tiny);
    ASSERT_EQ(ToHex(AsBytes(Sha256::Of(file))), golden["model_sha256"]);
    model::GgufFile gguf = model::GgufFile::Parse(file).value();
    const auto logits = RunnerHarness(gguf, {.kv = GetParam().kv})
                            .LogitsOf(golden["prompt_ids"].get<std::vector<uint32_t>>(), 128);
    float worst = 0;
    for (size_t r = 0; r < golden["rows"].size(); ++r) {
      const std::vector<float>& row = logits[golden["rows"][r].get<size_t>()];
      for (size_t i = 0; i < golden["ids"].size(); ++i) {
        const float expected = golden["logits"][r][i];
        worst = std::max(worst, std::fabs(row[golden["ids"][i].get<size_t>()] - expected));
      }
      EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), golden["argmax"][r]);
    }
    EXPECT_LE(worst, GetParam().tolerance);
    std::printf("%-110s largest error %.2g\n", options.dump().c_str(), worst);
  }
}

INSTANTIATE_TEST_SUITE_P(KvFormats, ReferenceTest, ::testing::ValuesIn(kFormats),
                         [](const auto& info) {
                           return std::string(kernels::KvDtypeName(info.param.kv));
                         });

}  // namespace
}  // namespace pagoda::worker
