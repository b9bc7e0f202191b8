#include "services/worker/testing/runner_harness.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace pagoda::worker::testing {
namespace {

template <typename T>
T OrAbort(StatusOr<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    std::abort();
  }
  return std::move(*result);
}

const kernels::Ops* OpsOrAbort(const std::string& isa) {
  const kernels::Ops* ops = nullptr;
  const kernels::KernelStatus status = kernels::SelectOps(isa, &ops);
  if (!status.ok()) {
    std::fprintf(stderr, "--isa %s: %s\n", isa.c_str(), KernelStatusText(status).c_str());
    std::abort();
  }
  return ops;
}

StepLimits LimitsOf(const RunnerHarness::Settings& settings) {
  return {.max_num_batched_tokens = settings.max_tokens,
          .max_num_seqs = settings.max_samples,
          .max_blocks_per_seq = settings.num_blocks};
}

}  // namespace

RunnerHarness::RunnerHarness(const model::GgufFile& gguf, const Settings& settings)
    : config_(OrAbort(model::ReadModelConfig(gguf))),
      team_(settings.threads),
      weights_(OrAbort(ModelWeights::Load(gguf, config_, team_))),
      pool_(OrAbort(
          KvPool::Create(OrAbort(KvPool::LayoutFor(config_, settings.block_tokens, settings.kv)),
                         settings.num_blocks))),
      plan_(LimitsOf(settings)) {
  ReleaseAll();
  runner_ = OrAbort(CpuModelRunner::Create({.config = config_,
                                            .weights = &weights_,
                                            .ops = OpsOrAbort(settings.isa),
                                            .team = &team_,
                                            .pool = pool_->view(),
                                            .limits = LimitsOf(settings)}));
}

void RunnerHarness::ReleaseAll() {
  free_blocks_.clear();
  for (int32_t block = 0; block < pool_->view().num_blocks; ++block) {
    std::memset(pool_->Bytes(BlockId{block}).data(), 0xFF, pool_->block_bytes());
    free_blocks_.push_back(block);
  }
  // Neighbours in a sequence are no neighbours in the pool.
  std::stable_sort(free_blocks_.begin(), free_blocks_.end(),
                   [](int32_t a, int32_t b) { return a % 5 < b % 5; });
}

RunnerHarness::Sequence RunnerHarness::NewSequence(int32_t tokens) {
  const int32_t block_tokens = pool_->layout().spec.block_tokens;
  Sequence sequence;
  for (int32_t held = 0; held < tokens; held += block_tokens) {
    if (free_blocks_.empty()) std::abort();
    sequence.blocks.push_back(free_blocks_.back());
    free_blocks_.pop_back();
  }
  return sequence;
}

void RunnerHarness::Plan(Sequence& sequence, std::span<const uint32_t> tokens, bool all_rows,
                         const SamplingParams& params) {
  const auto count = static_cast<int32_t>(tokens.size());
  plan_.slices[plan_.num_slices++] = {plan_.num_rows, count, plan_.num_block_entries,
                                      static_cast<int32_t>(sequence.blocks.size())};
  for (int32_t block : sequence.blocks) plan_.block_tables[plan_.num_block_entries++] = block;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t row = plan_.num_rows++;
    plan_.tokens[row] = tokens[i];
    plan_.positions[row] = plan_.slots[row] = sequence.length++;
    if (all_rows || i + 1 == count) plan_.samples[plan_.num_samples++] = {row, params};
  }
}

std::vector<SampledToken> RunnerHarness::Step() {
  StepResult result;
  const Ticket ticket = OrAbort(runner_->Launch(plan_));
  if (!runner_->Collect(ticket, result).ok()) std::abort();
  plan_.num_rows = plan_.num_slices = plan_.num_block_entries = plan_.num_samples = 0;
  return result.samples;
}

std::vector<std::vector<float>> RunnerHarness::LogitsOf(std::span<const uint32_t> tokens,
                                                        int32_t chunk) {
  Sequence sequence = NewSequence(static_cast<int32_t>(tokens.size()));
  std::vector<std::vector<float>> logits;
  for (size_t at = 0; at < tokens.size(); at += chunk) {
    const auto part = tokens.subspan(at, std::min<size_t>(chunk, tokens.size() - at));
    Plan(sequence, part, true);
    Step();
    for (size_t i = 0; i < part.size(); ++i) {
      const std::span<const float> row = runner_->logits(static_cast<int32_t>(i));
      logits.emplace_back(row.begin(), row.end());
    }
  }
  return logits;
}

std::vector<uint32_t> RunnerHarness::Greedy(std::span<const uint32_t> prompt, int32_t steps,
                                            int32_t chunk) {
  Sequence sequence = NewSequence(static_cast<int32_t>(prompt.size()) + steps);
  std::vector<uint32_t> out;
  for (size_t at = 0; at < prompt.size(); at += chunk) {
    Plan(sequence, prompt.subspan(at, std::min<size_t>(chunk, prompt.size() - at)), false);
    const std::vector<SampledToken> sampled = Step();
    if (at + chunk >= prompt.size()) out.push_back(sampled[0].token);
  }
  while (static_cast<int32_t>(out.size()) < steps) {
    const uint32_t last = out.back();
    Plan(sequence, {&last, 1}, false);
    out.push_back(Step()[0].token);
  }
  return out;
}

std::vector<uint32_t> SomeTokens(int32_t count, uint32_t vocabulary, uint32_t salt) {
  std::vector<uint32_t> tokens(count);
  for (int32_t i = 0; i < count; ++i) tokens[i] = (i * 7919u + salt * 104729u + 13u) % vocabulary;
  return tokens;
}

}  // namespace pagoda::worker::testing
