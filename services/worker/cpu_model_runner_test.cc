#include "services/worker/cpu_model_runner.h"

#include <cmath>
#include <limits>

#include "common/base/bytes.h"
#include "common/model/testing/tiny_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/worker/testing/runner_harness.h"

namespace pagoda::worker {
namespace {

using model::TensorType;
using model::testing::TinyModel;
using ::testing::HasSubstr;
using testing::RunnerHarness;
using testing::SomeTokens;

class CpuModelRunnerTest : public ::testing::Test {
 protected:
  std::string file_ = TinyModel({.tied_head = false, .embedding = TensorType::kF32});
  model::GgufFile gguf_ = model::GgufFile::Parse(file_).value();
};

using Rows = std::vector<std::vector<float>>;

TEST_F(CpuModelRunnerTest, ComputesBehindABlockThatIsReady) {
  RunnerHarness harness(gguf_, {});
  const std::vector<uint32_t> tokens = SomeTokens(100, 512);
  const Rows alone = harness.LogitsOf(tokens, 100);

  RunnerHarness::Sequence full = harness.NewSequence(100);
  harness.Plan(full, tokens, false);
  harness.Step();
  // The middle block comes from `full`; the blocks around it are computed in one step.
  RunnerHarness::Sequence hole = harness.NewSequence(128);
  hole.blocks[1] = full.blocks[1];
  harness.Plan(hole, std::span(tokens).first(32), true);
  hole.length = 64;
  harness.Plan(hole, std::span(tokens).subspan(64), true);
  harness.Step();
  for (int32_t i = 0; i < 32 + 36; ++i) {
    const std::span<const float> row = harness.runner().logits(i);
    EXPECT_EQ(Rows::value_type(row.begin(), row.end()), alone[i < 32 ? i : i + 32]) << i;
  }
}

TEST_F(CpuModelRunnerTest, PositionsTurnHeadsAndSlotsPlaceThem) {
  RunnerHarness harness(gguf_, {});
  const std::vector<uint32_t> tokens = SomeTokens(40, 512);
  const Rows plain = harness.LogitsOf(tokens, 40);
  // The rotary embedding is relative: shifted positions in the same slots give nearly the same
  // logits.
  auto shifted = [&](int32_t shift, int32_t from) {
    RunnerHarness::Sequence sequence = harness.NewSequence(40);
    harness.Plan(sequence, tokens, true);
    for (int32_t row = from; row < 40; ++row) harness.plan().positions[row] += shift;
    harness.Step();
    float largest = 0;
    for (int32_t i = 0; i < 512; ++i) {
      largest = std::max(largest, std::fabs(harness.runner().logits(39)[i] - plain[39][i]));
    }
    return largest;
  };
  EXPECT_LT(shifted(100, 0), 0.01f);
  EXPECT_GT(shifted(100, 20), 0.1f);
}

TEST_F(CpuModelRunnerTest, SeveralChoicesMaySampleOneRow) {
  RunnerHarness harness(gguf_, {});
  RunnerHarness::Sequence sequence = harness.NewSequence(8);
  harness.Plan(sequence, SomeTokens(8, 512), false);
  harness.plan().samples[0].params = {.temperature = 5, .seed = 1, .choice = 0};
  for (uint32_t choice = 1; choice < 8; ++choice) {
    harness.plan().samples[choice] = {7, {.temperature = 5, .seed = 1, .choice = choice}};
  }
  harness.plan().num_samples = 8;
  const std::vector<SampledToken> sampled = harness.Step();
  std::vector<uint32_t> tokens;
  for (const SampledToken& one : sampled) tokens.push_back(one.token);
  for (int32_t i = 1; i < 8; ++i) {
    EXPECT_EQ(harness.runner().logits(i)[0], harness.runner().logits(0)[0]);
  }
  EXPECT_THAT(tokens, ::testing::Not(::testing::Each(tokens[0])));
}

TEST_F(CpuModelRunnerTest, TheDrawIsThatOfTheSampledTokensPosition) {
  RunnerHarness harness(gguf_, {});
  RunnerHarness::Sequence sequence = harness.NewSequence(8);
  const SamplingParams params{.temperature = 5, .seed = 3};
  harness.Plan(sequence, SomeTokens(8, 512), true, params);
  for (int32_t row = 0; row < 8; ++row) harness.plan().positions[row] += 1000;
  const std::vector<SampledToken> sampled = harness.Step();
  const kernels::Ops* ops = nullptr;
  ASSERT_TRUE(kernels::SelectOps("scalar", &ops).ok());
  Sampler sampler(*ops, 512);
  for (int32_t row = 0; row < 8; ++row) {
    EXPECT_EQ(sampled[row].token,
              sampler.Sample(harness.runner().logits(row), params, 1000 + row + 1).token);
  }
}

class Ban final : public LogitsProcessor {
 public:
  explicit Ban(std::vector<uint32_t> allowed) : allowed_(std::move(allowed)) {}
  void Apply(std::span<float> logits) override {
    std::vector<float> kept(logits.size(), -std::numeric_limits<float>::infinity());
    for (uint32_t token : allowed_) kept[token] = logits[token];
    std::copy(kept.begin(), kept.end(), logits.begin());
  }

 private:
  std::vector<uint32_t> allowed_;
};

TEST_F(CpuModelRunnerTest, TheMaskDecidesWhatMayBeSampledForItsRowOnly) {
  RunnerHarness harness(gguf_, {.threads = 2});
  const std::vector<uint32_t> tokens = SomeTokens(8, 512);
  RunnerHarness::Sequence sequences[3];
  for (auto& sequence : sequences) {
    sequence = harness.NewSequence(8);
    harness.Plan(sequence, tokens, false);
  }
  Ban only_300({300}), nothing({});
  harness.plan().samples[1].mask = &only_300;
  harness.plan().samples[2].mask = &nothing;
  const std::vector<SampledToken> sampled = harness.Step();
  EXPECT_EQ(sampled[0].outcome, SampleOutcome::kToken);
  EXPECT_NE(sampled[0].token, 300u);
  EXPECT_EQ(sampled[1].token, 300u);
  EXPECT_EQ(sampled[2].outcome, SampleOutcome::kNothingAllowed);
}

// Sees what was done before it.
class Raise final : public LogitsProcessor {
 public:
  explicit Raise(uint32_t token) : token_(token) {}
  void Apply(std::span<float> logits) override { logits[token_] += 1000; }

 private:
  const uint32_t token_;
};

TEST_F(CpuModelRunnerTest, PenaltiesComeAfterTheMaskAndForTheirRowOnly) {
  RunnerHarness harness(gguf_, {.threads = 2});
  const std::vector<uint32_t> tokens = SomeTokens(8, 512);
  RunnerHarness::Sequence sequences[3];
  for (auto& sequence : sequences) {
    sequence = harness.NewSequence(8);
    harness.Plan(sequence, tokens, false);
  }
  Ban only_300({300});
  Raise raise_301(301), raise_302(302);
  harness.plan().samples[1].penalties = &raise_302;
  harness.plan().samples[2].mask = &only_300;
  harness.plan().samples[2].penalties = &raise_301;
  const std::vector<SampledToken> sampled = harness.Step();
  EXPECT_NE(sampled[0].token, 302u);
  EXPECT_EQ(sampled[1].token, 302u);
  EXPECT_EQ(sampled[2].token, 300u) << "what the mask forbids stays forbidden";
}

TEST_F(CpuModelRunnerTest, NonFiniteLogitsEndTheirOwnRowOnly) {
  const RunnerHarness::Settings settings;
  const std::vector<uint32_t> good = SomeTokens(8, 512);
  std::vector<uint32_t> bad = good;
  bad[3] = 500;
  std::string broken = file_;
  model::GgufFile parsed = model::GgufFile::Parse(broken).value();
  const size_t row =
      parsed.FindTensor("token_embd.weight")->data.data() - broken.data() + 500 * 128 * 4;
  StoreLe(broken.data() + row, std::numeric_limits<float>::quiet_NaN());

  RunnerHarness clean(gguf_, settings), harness(parsed, settings);
  const uint32_t expected = clean.Greedy(good, 1, 8)[0];
  RunnerHarness::Sequence a = harness.NewSequence(8), b = harness.NewSequence(8);
  harness.Plan(a, bad, false);
  harness.Plan(b, good, false);
  const std::vector<SampledToken> sampled = harness.Step();
  EXPECT_EQ(sampled[0].outcome, SampleOutcome::kNonFiniteLogits);
  EXPECT_EQ(sampled[1].outcome, SampleOutcome::kToken);
  EXPECT_EQ(sampled[1].token, expected);
}

TEST_F(CpuModelRunnerTest, TicketsAreCollectedOnceAndInOrder) {
  RunnerHarness harness(gguf_, {});
  RunnerHarness::Sequence sequence = harness.NewSequence(8);
  harness.Plan(sequence, SomeTokens(8, 512), false);
  StepResult result;
  EXPECT_EQ(harness.runner().Collect(Ticket{1}, result).code(),
            absl::StatusCode::kFailedPrecondition);
  const Ticket ticket = harness.runner().Launch(harness.plan()).value();
  EXPECT_EQ(harness.runner().Launch(harness.plan()).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(harness.runner().Collect(Ticket{ticket.id + 1}, result).ok());
  EXPECT_TRUE(harness.runner().Collect(ticket, result).ok());
  EXPECT_EQ(result.samples.size(), 1u);
  EXPECT_FALSE(harness.runner().Collect(ticket, result).ok());
}

TEST_F(CpuModelRunnerTest, APlanThatBreaksARuleIsRefusedByFieldAndChangesNothing) {
  RunnerHarness harness(gguf_, {.num_blocks = 8});
  RunnerHarness::Sequence sequence = harness.NewSequence(64);
  auto refused = [&](auto&& spoil, const std::string& words) {
    sequence.length = 0;
    harness.Plan(sequence, SomeTokens(40, 512), false);
    StepPlan& plan = harness.plan();
    spoil(plan);
    Status status = harness.runner().Launch(plan).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << words;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    plan.num_rows = plan.num_slices = plan.num_block_entries = plan.num_samples = 0;
  };
  refused([](StepPlan& plan) { plan.num_rows = 0; }, "num_rows = 0");
  refused([](StepPlan& plan) { plan.num_rows = 513; }, "num_rows = 513");
  refused([](StepPlan& plan) { plan.num_rows = 41; }, "num_rows = 41");
  refused([](StepPlan& plan) { plan.num_slices = 0; }, "num_slices");
  refused([](StepPlan& plan) { plan.num_samples = -1; }, "num_samples");
  refused([](StepPlan& plan) { plan.slices[0].first_row = 1; }, "slices.first_row[0] = 1");
  refused([](StepPlan& plan) { plan.slices[0].num_rows = 41; }, "slices.num_rows[0] = 41");
  refused([](StepPlan& plan) { plan.slices[0].num_blocks = 3; }, "slices.num_blocks[0] = 3");
  refused([](StepPlan& plan) { plan.slices[0].num_blocks = 1; }, "slots");
  refused([](StepPlan& plan) { plan.slots[3] = 5; }, "slots[3] = 5");
  refused([](StepPlan& plan) { plan.slots[0] = -1; }, "slots[0] = -1");
  refused([](StepPlan& plan) { plan.positions[3] = 2; }, "positions[3] = 2");
  refused([](StepPlan& plan) { plan.positions[39] = 1 << 25; }, "positions[39]");
  refused([](StepPlan& plan) { plan.tokens[5] = 512; }, "tokens[5] = 512 is not in [0, 511]");
  refused([](StepPlan& plan) { plan.block_tables[1] = 8; }, "block_tables[1] = 8");
  refused([](StepPlan& plan) { plan.block_tables[0] = -1; }, "block_tables[0] = -1");
  refused([](StepPlan& plan) { plan.samples[0].row = 40; }, "samples.row[0] = 40");
  refused([](StepPlan& plan) { plan.samples[0].params.top_p = 2; }, "top_p: 2");
  // The pool still holds nothing but the poison.
  for (int32_t block = 0; block < 8; ++block) {
    for (std::byte byte : harness.pool().Bytes(BlockId{block})) ASSERT_EQ(byte, std::byte{0xFF});
  }
}

TEST_F(CpuModelRunnerTest, APoolThatDoesNotFitTheModelIsRefused) {
  RunnerHarness harness(gguf_, {});
  model::ModelConfig other = harness.config();
  other.num_kv_heads = 1;
  const kernels::KvLayout layout = KvPool::LayoutFor(other, 32, kernels::KvDtype::kF32).value();
  std::unique_ptr<KvPool> pool = KvPool::Create(layout, 4).value();
  CpuModelRunner::Options options{
      .config = harness.config(), .pool = pool->view(), .limits = {.max_blocks_per_seq = 4}};
  EXPECT_THAT(std::string(CpuModelRunner::Create(options).status().message()),
              HasSubstr("num_kv_heads = 1, the model has 2"));
  options.limits.max_num_seqs = 0;
  EXPECT_THAT(std::string(CpuModelRunner::Create(options).status().message()),
              HasSubstr("max_num_seqs = 0"));
}

TEST_F(CpuModelRunnerTest, TheBudgetCountsEveryBuffer) {
  RunnerHarness harness(gguf_, {.threads = 2, .max_tokens = 10, .max_samples = 4});
  const MemoryBudget budget = harness.runner().budget();
  EXPECT_EQ(budget.logits, 4 * 512 * 4);
  EXPECT_GE(budget.weights, 2 * 512 * 128 * 4);     // embedding and head in F32
  EXPECT_GE(budget.activations, 10 * 128 * 4 * 3);  // at least x, h and delta
  EXPECT_EQ(budget.sampler, 2 * 512 * 16);
  EXPECT_GT(budget.scores, 0);
}

TEST(KvPoolTest, RefusesWhatItHasNoKernelsFor) {
  const std::string file = TinyModel({});
  model::GgufFile gguf = model::GgufFile::Parse(file).value();
  const model::ModelConfig config = model::ReadModelConfig(gguf).value();
  EXPECT_EQ(KvPool::LayoutFor(config, 32, kernels::KvDtype::kInt8).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(KvPool::LayoutFor(config, 33, kernels::KvDtype::kF32).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(
      KvPool::Create(KvPool::LayoutFor(config, 32, kernels::KvDtype::kF32).value(), 0).ok());
}

}  // namespace
}  // namespace pagoda::worker
