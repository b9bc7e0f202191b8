// A model whose every number can be checked: the "KV" of a token is a hash of all KV before it and
// the token, read through the block table, and the next token is a hash of all KV. A wrong, stale,
// poisoned or half-written block anywhere gives other tokens.
//
// Concurrency: Launch and Collect on one thread; the memory as block_memory.h says.
#ifndef PAGODA_SERVICES_WORKER_TESTING_FAKE_MODEL_H_
#define PAGODA_SERVICES_WORKER_TESTING_FAKE_MODEL_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/kv/block_key.h"
#include "services/worker/block_memory.h"
#include "services/worker/model_runner.h"

namespace pagoda::worker::testing {

class FakeModel final : public ModelRunner, public BlockMemory {
 public:
  using Slot = uint64_t;

  FakeModel(int32_t num_blocks, int32_t block_tokens, uint32_t vocabulary_size)
      : block_tokens_(block_tokens),
        vocabulary_size_(vocabulary_size),
        block_bytes_((block_tokens * sizeof(Slot) + 63) / 64 * 64),
        memory_(num_blocks * block_bytes_, std::byte{0xFF}) {}

  StatusOr<Ticket> Launch(const StepPlan& plan) override {
    if (before_launch) PAGODA_RETURN_IF_ERROR(before_launch(plan));
    samples_.clear();
    std::vector<uint64_t> states(plan.num_rows);
    for (int32_t s = 0; s < plan.num_slices; ++s) {
      const PlanSlice& slice = plan.slices[s];
      std::span<const int32_t> table(plan.block_tables.data() + slice.first_block,
                                     slice.num_blocks);
      for (int32_t row = slice.first_row; row < slice.first_row + slice.num_rows; ++row) {
        uint64_t state = kStart;
        for (int32_t slot = 0; slot < plan.slots[row]; ++slot) {
          state = Mix(state, SlotAt(table, slot));
        }
        SlotAt(table, plan.slots[row]) = Mix(state, plan.tokens[row]);
        states[row] = Mix(state, SlotAt(table, plan.slots[row]));
      }
    }
    for (int32_t i = 0; i < plan.num_samples; ++i) {
      const PlanSample& sample = plan.samples[i];
      samples_.push_back({.token = Next(states[sample.row], sample.params.seed, vocabulary_size_)});
    }
    ++launches;
    return Ticket{launches};
  }

  Status Collect(Ticket ticket, StepResult& result) override {
    result.samples = samples_;
    if (before_collect) before_collect(result);
    return absl::OkStatus();
  }

  size_t block_bytes() const override { return block_bytes_; }
  std::span<std::byte> Bytes(BlockId block) override {
    return std::span(memory_).subspan(static_cast<int32_t>(block) * block_bytes_, block_bytes_);
  }

  // What block `index` of these tokens holds when nothing went wrong.
  static std::vector<Slot> BlockOf(std::span<const TokenId> tokens, int32_t index,
                                   int32_t block_tokens) {
    std::vector<Slot> all = SlotsOf(tokens.first((index + 1) * block_tokens));
    return {all.end() - block_tokens, all.end()};
  }

  static std::vector<Slot> SlotsOf(std::span<const TokenId> tokens) {
    std::vector<Slot> slots;
    uint64_t state = kStart;
    for (TokenId token : tokens) {
      slots.push_back(Mix(state, token));
      state = Mix(state, slots.back());
    }
    return slots;
  }

  // The tokens that a lone request would get.
  static std::vector<TokenId> Generate(std::vector<TokenId> tokens, size_t count, uint64_t seed,
                                       uint32_t vocabulary_size) {
    std::vector<TokenId> output;
    while (output.size() < count) {
      uint64_t state = kStart;
      for (Slot slot : SlotsOf(tokens)) state = Mix(state, slot);
      output.push_back(Next(state, seed, vocabulary_size));
      tokens.push_back(output.back());
    }
    return output;
  }

  // May look at a plan, wait, or fail its launch.
  std::function<Status(const StepPlan&)> before_launch;
  // May change what a step sampled.
  std::function<void(StepResult&)> before_collect;
  uint64_t launches = 0;

 private:
  static constexpr uint64_t kStart = 0x9E3779B97F4A7C15;

  // splitmix64's finaliser over both.
  static uint64_t Mix(uint64_t state, uint64_t value) {
    uint64_t x = state * 0xD6E8FEB86659FD93 + value + kStart;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }
  static TokenId Next(uint64_t state, uint64_t seed, uint32_t vocabulary_size) {
    return static_cast<TokenId>(Mix(state, seed) % vocabulary_size);
  }

  Slot& SlotAt(std::span<const int32_t> table, int32_t slot) {
    std::byte* block = Bytes(BlockId{table[slot / block_tokens_]}).data();
    return reinterpret_cast<Slot*>(block)[slot % block_tokens_];
  }

  const int32_t block_tokens_;
  const uint32_t vocabulary_size_;
  const size_t block_bytes_;
  std::vector<std::byte> memory_;
  std::vector<SampledToken> samples_;
};

}  // namespace pagoda::worker::testing

#endif  // PAGODA_SERVICES_WORKER_TESTING_FAKE_MODEL_H_
