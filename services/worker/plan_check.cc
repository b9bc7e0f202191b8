#include "services/worker/plan_check.h"

#include <algorithm>
#include <string>

#include "services/worker/sampler.h"

namespace pagoda::worker {
namespace {

// OK when low <= value <= high.
Status InRange(const char* field, int64_t index, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  const std::string where = index < 0 ? "" : "[" + std::to_string(index) + "]";
  return absl::InvalidArgumentError("plan: " + std::string(field) + where + " = " +
                                    std::to_string(value) + " is not in [" + std::to_string(low) +
                                    ", " + std::to_string(high) + "]");
}

Status CheckCounts(const StepPlan& plan, const StepLimits& limits) {
  const auto held = [](const auto& array, int64_t limit) {
    return std::min(static_cast<int64_t>(array.size()), limit);
  };
  const int64_t rows = held(plan.tokens, limits.max_num_batched_tokens);
  PAGODA_RETURN_IF_ERROR(InRange("num_rows", -1, plan.num_rows, 1, rows));
  PAGODA_RETURN_IF_ERROR(InRange("num_slices", -1, plan.num_slices, 1, held(plan.slices, rows)));
  PAGODA_RETURN_IF_ERROR(
      InRange("num_samples", -1, plan.num_samples, 0, held(plan.samples, limits.max_num_seqs)));
  const int64_t entries = int64_t{limits.max_num_seqs} * limits.max_blocks_per_seq;
  return InRange("num_block_entries", -1, plan.num_block_entries, 1,
                 held(plan.block_tables, entries));
}

Status CheckSlice(const StepPlan& plan, int32_t index, const PlanBounds& bounds) {
  const PlanSlice& slice = plan.slices[index];
  PAGODA_RETURN_IF_ERROR(
      InRange("slices.num_rows", index, slice.num_rows, 1, plan.num_rows - slice.first_row));
  PAGODA_RETURN_IF_ERROR(
      InRange("slices.first_block", index, slice.first_block, 0, plan.num_block_entries - 1));
  PAGODA_RETURN_IF_ERROR(InRange("slices.num_blocks", index, slice.num_blocks, 1,
                                 plan.num_block_entries - slice.first_block));
  const int64_t slots = int64_t{slice.num_blocks} * bounds.block_tokens;
  for (int32_t row = slice.first_row; row < slice.first_row + slice.num_rows; ++row) {
    const bool first = row == slice.first_row;
    const int64_t low_slot = first ? 0 : int64_t{plan.slots[row - 1]} + 1;
    PAGODA_RETURN_IF_ERROR(
        InRange("slots", row, plan.slots[row], low_slot, first ? slots - 1 : low_slot));
    const int64_t low_position = first ? 0 : int64_t{plan.positions[row - 1]} + 1;
    PAGODA_RETURN_IF_ERROR(
        InRange("positions", row, plan.positions[row], low_position, bounds.max_position));
    PAGODA_RETURN_IF_ERROR(
        InRange("tokens", row, plan.tokens[row], 0, int64_t{bounds.vocabulary} - 1));
  }
  const int32_t last = slice.first_row + slice.num_rows - 1;
  return InRange("slots", last, plan.slots[last], 0, slots - 1);
}

}  // namespace

Status CheckPlan(const StepPlan& plan, const PlanBounds& bounds) {
  PAGODA_RETURN_IF_ERROR(CheckCounts(plan, bounds.limits));
  int32_t next_row = 0;
  for (int32_t i = 0; i < plan.num_slices; ++i) {
    PAGODA_RETURN_IF_ERROR(
        InRange("slices.first_row", i, plan.slices[i].first_row, next_row, next_row));
    PAGODA_RETURN_IF_ERROR(CheckSlice(plan, i, bounds));
    next_row += plan.slices[i].num_rows;
  }
  PAGODA_RETURN_IF_ERROR(InRange("num_rows", -1, plan.num_rows, next_row, next_row));
  for (int32_t i = 0; i < plan.num_block_entries; ++i) {
    PAGODA_RETURN_IF_ERROR(
        InRange("block_tables", i, plan.block_tables[i], 0, bounds.num_blocks - 1));
  }
  for (int32_t i = 0; i < plan.num_samples; ++i) {
    PAGODA_RETURN_IF_ERROR(InRange("samples.row", i, plan.samples[i].row, 0, plan.num_rows - 1));
    Status params = CheckSamplingParams(plan.samples[i].params);
    if (!params.ok()) return Annotate(params, "plan: samples[" + std::to_string(i) + "]");
  }
  return absl::OkStatus();
}

}  // namespace pagoda::worker
