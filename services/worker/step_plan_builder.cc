#include "services/worker/step_plan_builder.h"

#include <cassert>

namespace pagoda::worker {

void BuildStepPlan(const Scheduler::Step& step, StepPlan& plan) {
  assert(step.num_rows <= plan.limits.max_num_batched_tokens);
  plan.num_rows = plan.num_slices = plan.num_block_entries = plan.num_samples = 0;
  for (const Scheduler::Chunk& chunk : step.chunks) {
    const Sequence& sequence = *chunk.sequence;
    AppendSlice(sequence.tokens(), sequence.table, chunk.start, chunk.start + chunk.count, plan);
    if (chunk.samples) {
      plan.samples[plan.num_samples++] = {.row = plan.num_rows - 1,
                                          .params = sequence.request().sampling,
                                          .mask = sequence.request().mask.get(),
                                          .penalties = chunk.sequence->penalties()};
    }
  }
}

void AppendSlice(std::span<const TokenId> tokens, const BlockTable& table, int32_t start,
                 int32_t end, StepPlan& plan) {
  PlanSlice slice{.first_row = plan.num_rows,
                  .num_rows = end - start,
                  .first_block = plan.num_block_entries,
                  .num_blocks = BlocksFor(end, table.block_tokens())};
  for (int32_t i = start; i < end; ++i) {
    plan.tokens[plan.num_rows] = tokens[i];
    plan.positions[plan.num_rows] = i;
    plan.slots[plan.num_rows] = i;
    ++plan.num_rows;
  }
  for (int32_t i = 0; i < slice.num_blocks; ++i) {
    plan.block_tables[plan.num_block_entries++] = static_cast<int32_t>(table.at(i).id);
  }
  plan.slices[plan.num_slices++] = slice;
}

}  // namespace pagoda::worker
