#include "services/worker/self_test.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/base/clock.h"

namespace pagoda::worker {
namespace {

// Tokens [first, first + count) of the test prompt as the only slice of a step; the last row
// samples.
void PlanPiece(StepPlan& plan, int32_t first, int32_t count, int32_t num_blocks,
               int32_t vocabulary) {
  plan.num_rows = count;
  for (int32_t row = 0; row < count; ++row) {
    plan.tokens[row] = static_cast<uint32_t>((first + row) * 37 % vocabulary);
    plan.positions[row] = plan.slots[row] = first + row;
  }
  plan.num_slices = 1;
  plan.slices[0] = {.first_row = 0, .num_rows = count, .first_block = 0, .num_blocks = num_blocks};
  plan.num_block_entries = num_blocks;
  for (int32_t block = 0; block < num_blocks; ++block) plan.block_tables[block] = block;
  plan.num_samples = 1;
  plan.samples[0] = {.row = count - 1};
}

Status RunPiece(CpuModelRunner& runner, const StepPlan& plan) {
  StepResult result;
  PAGODA_ASSIGN_OR_RETURN(Ticket ticket, runner.Launch(plan));
  PAGODA_RETURN_IF_ERROR(runner.Collect(ticket, result));
  if (result.samples[0].outcome != SampleOutcome::kToken) {
    return absl::InternalError("self-test: the model gives non-finite logits (a damaged file?)");
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<double> RunSelfTest(CpuModelRunner& runner, const StepLimits& limits, int32_t block_tokens,
                             int32_t vocabulary) {
  const int32_t num_blocks = std::min(2, limits.max_blocks_per_seq);
  const int32_t tokens = std::min(num_blocks * block_tokens, limits.max_num_batched_tokens);
  StepPlan plan(limits);
  PlanPiece(plan, 0, tokens, num_blocks, vocabulary);
  PAGODA_RETURN_IF_ERROR(RunPiece(runner, plan));  // also warms caches up
  const TimePoint begin = SystemClock::Get()->Now();
  PAGODA_RETURN_IF_ERROR(RunPiece(runner, plan));
  const double seconds = std::max(1e-9, ToSeconds(SystemClock::Get()->Now() - begin));
  const std::vector<float> whole(runner.logits(0).begin(), runner.logits(0).end());

  // A border that is no multiple of any tile.
  const int32_t border = std::max(1, tokens * 3 / 5);
  if (border < tokens) {
    PlanPiece(plan, 0, border, num_blocks, vocabulary);
    PAGODA_RETURN_IF_ERROR(RunPiece(runner, plan));
    PlanPiece(plan, border, tokens - border, num_blocks, vocabulary);
    PAGODA_RETURN_IF_ERROR(RunPiece(runner, plan));
  }
  if (std::memcmp(whole.data(), runner.logits(0).data(), whole.size() * sizeof(float)) != 0) {
    return absl::InternalError(
        "self-test: the same prompt gave other logits when it was cut in two; this machine or "
        "build "
        "breaks the exactness contract");
  }
  return tokens / seconds;
}

}  // namespace pagoda::worker
