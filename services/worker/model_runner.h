// Runs the forward pass of a step's rows and samples the tokens that follow. One implementation per
// backend; the engine knows only this interface.
//
// Launch and Collect are apart so that the scheduler may plan step t + 1 before it knows the tokens
// of step t (it needs counts, not values). The CPU backend computes inside Launch.
//
// Concurrency: one thread (the engine's).
#ifndef PAGODA_SERVICES_WORKER_MODEL_RUNNER_H_
#define PAGODA_SERVICES_WORKER_MODEL_RUNNER_H_

#include <cstdint>

#include "common/base/status.h"
#include "services/worker/step_plan.h"

namespace pagoda::worker {

// Names one launched step. Tickets are collected once each, in the order of their launches.
struct Ticket {
  uint64_t id = 0;
};

class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  // Starts the step: writes K and V of every row into its slot and samples. Blocks that it writes
  // may be read by later launches at once. `plan` must stay unchanged until its ticket is
  // collected. Errors: INVALID_ARGUMENT naming the field when the plan breaks a rule of step_plan.h
  // (nothing was written then); RESOURCE_EXHAUSTED when too many launches are uncollected (CPU: 1).
  virtual StatusOr<Ticket> Launch(const StepPlan& plan) = 0;

  // Waits for the step and fills `result` (in the order of the plan's samples; the vector is
  // reused). After it, blocks written by the step may be pushed or announced. Errors:
  // FAILED_PRECONDITION for a ticket that is not the oldest uncollected one.
  virtual Status Collect(Ticket ticket, StepResult& result) = 0;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_MODEL_RUNNER_H_
