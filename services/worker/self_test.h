// What a worker checks before it serves: that this machine computes the same bits however a prompt
// is cut into steps. A CPU, a compiler flag or a library that breaks the exactness contract is
// found here and not by a user.
//
// Concurrency: before the engine starts; nothing else may use the runner or the pool.
#ifndef PAGODA_SERVICES_WORKER_SELF_TEST_H_
#define PAGODA_SERVICES_WORKER_SELF_TEST_H_

#include <cstdint>

#include "common/base/status.h"
#include "services/worker/cpu_model_runner.h"
#include "services/worker/step_plan.h"

namespace pagoda::worker {

// Computes a short prompt whole and in two pieces, in blocks 0 and 1 of the pool, and compares the
// logits bit by bit. Returns the prefill speed it saw, in tokens per second: a first guess for
// whether loading beats computing. Errors: INTERNAL when bits differ, or those of the runner.
StatusOr<double> RunSelfTest(CpuModelRunner& runner, const StepLimits& limits, int32_t block_tokens,
                             int32_t vocabulary);

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_SELF_TEST_H_
