// Checks a StepPlan against the rules of step_plan.h, so that kernels may trust it.
//
// It cannot know whether a block belongs to the sequence that names it (the block manager does).
//
// Concurrency: a pure function.
#ifndef PAGODA_SERVICES_WORKER_PLAN_CHECK_H_
#define PAGODA_SERVICES_WORKER_PLAN_CHECK_H_

#include <cstdint>

#include "common/base/status.h"
#include "services/worker/step_plan.h"

namespace pagoda::worker {

// What a plan may refer to.
struct PlanBounds {
  StepLimits limits;
  uint32_t vocabulary = 0;
  int32_t num_blocks = 0;
  int32_t block_tokens = 0;
  int32_t max_position = 0;  // the largest position that the rotary embedding is exact for
};

// Errors: INVALID_ARGUMENT naming the field, the value and the limit. Costs O(rows).
Status CheckPlan(const StepPlan& plan, const PlanBounds& bounds);

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_PLAN_CHECK_H_
