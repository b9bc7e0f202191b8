// What every request of a router works with: the model, the workers, the placement books, threads
// for text work, and the generations that are running.
//
// Concurrency: the members guard themselves; the struct is fixed once built and outlives all
// requests.
#ifndef PAGODA_SERVICES_ROUTER_ROUTER_CORE_H_
#define PAGODA_SERVICES_ROUTER_ROUTER_CORE_H_

#include <chrono>
#include <memory>

#include "common/base/clock.h"
#include "common/base/executor.h"
#include "services/router/active_generations.h"
#include "services/router/request_plan.h"
#include "services/router/router_metrics.h"
#include "services/router/served_model.h"
#include "services/router/worker_registry.h"

namespace pagoda::router {

// A request may be tried on this many workers: one that fails everywhere is not a worker's fault.
inline constexpr int kMaxAttempts = 3;
// Ends a generation that everybody has forgotten; far above any answer that somebody waits for.
inline constexpr Duration kMaxGenerationTime = std::chrono::hours(1);

struct RouterCore {
  std::shared_ptr<const ServedModel> model;
  placement::Placement* placement = nullptr;
  WorkerRegistry* workers = nullptr;
  RouterMetrics* metrics = nullptr;
  const Clock* clock = nullptr;
  Executor* text_executor = nullptr;  // parsing, templates and tokenising: milliseconds of CPU
  ActiveGenerations* active = nullptr;
  bool allow_placement_override = false;

  PlanLimits plan_limits() const {
    return {.max_model_len = workers->max_model_len(),
            .allow_placement_override = allow_placement_override};
  }
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_ROUTER_CORE_H_
