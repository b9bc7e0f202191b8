// What every request of a router works with: the model, the workers, the placement books, threads
// for text work, and the generations that are running.
//
// Concurrency: the members guard themselves; the struct is fixed once built and outlives all
// requests.
#ifndef PAGODA_SERVICES_ROUTER_ROUTER_CORE_H_
#define PAGODA_SERVICES_ROUTER_ROUTER_CORE_H_

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "common/base/clock.h"
#include "common/base/executor.h"
#include "services/router/active_generations.h"
#include "services/router/open_calls.h"
#include "services/router/request_plan.h"
#include "services/router/router_metrics.h"
#include "services/router/served_model.h"
#include "services/router/worker_registry.h"

namespace pagoda::router {

// Ends a generation that everybody has forgotten; far above any answer that somebody waits for.
inline constexpr Duration kMaxGenerationTime = std::chrono::hours(1);

// How long a generation waits for a worker. The limits end an attempt whose worker lives and steps
// and yet sends nothing (a connection that swallows, a sequence that is forgotten): workers that
// hang are found by their reports much sooner. So they lie far above what an overloaded host may
// need.
struct GenerationLimits {
  // Once tokens were delivered, for a worker that can continue.
  Duration resume_wait = std::chrono::seconds(10);
  // Added to ten times what placement predicted for waiting and prefill.
  Duration first_token = std::chrono::seconds(60);
  Duration between_tokens = std::chrono::seconds(60);
};

struct RouterCore {
  std::shared_ptr<const ServedModel> model;
  placement::Placement* placement = nullptr;
  WorkerRegistry* workers = nullptr;
  RouterMetrics* metrics = nullptr;
  const Clock* clock = nullptr;
  Executor* text_executor = nullptr;  // parsing, templates and tokenising: milliseconds of CPU
  ActiveGenerations* active = nullptr;
  OpenCalls* grpc_calls = nullptr;
  KillerTable* killers = nullptr;
  GenerationLimits limits;
  bool allow_placement_override = false;

  // Errors: RESOURCE_EXHAUSTED when too many tasks wait, UNAVAILABLE when the router is stopping.
  Status RunOnTextThread(std::function<void()> task) const {
    if (text_executor->TryRun(std::move(task))) return absl::OkStatus();
    PAGODA_RETURN_IF_ERROR(active->Accepting());
    return absl::ResourceExhaustedError("the queue of new requests is full; try again");
  }

  PlanLimits plan_limits() const {
    return {.max_model_len = workers->max_model_len(),
            .allow_placement_override = allow_placement_override};
  }
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_ROUTER_CORE_H_
