// Writes the scheduler's decision into the arrays that a ModelRunner reads.
//
// Concurrency: the engine thread only.
#ifndef PAGODA_SERVICES_WORKER_STEP_PLAN_BUILDER_H_
#define PAGODA_SERVICES_WORKER_STEP_PLAN_BUILDER_H_

#include <span>

#include "services/worker/scheduler.h"
#include "services/worker/step_plan.h"

namespace pagoda::worker {

// One slice a chunk, in order; one sample for each chunk that samples, in order. Positions equal
// slots. REQUIRES: the step keeps plan.limits.
void BuildStepPlan(const Scheduler::Step& step, StepPlan& plan);

// One slice that samples nothing: rows [start, end) of the tokens, over the table's blocks.
void AppendSlice(std::span<const TokenId> tokens, const BlockTable& table, int32_t start,
                 int32_t end, StepPlan& plan);

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_STEP_PLAN_BUILDER_H_
