#include "common/placement/least_loaded.h"

#include <vector>

#include "common/placement/lowest_cost.h"

namespace pagoda::placement {

Decision LeastLoadedPolicy::Choose(uint32_t, std::span<const WorkerView> workers) {
  std::vector<double> costs;
  for (const WorkerView& worker : workers) costs.push_back(worker.requests);
  LowestCost best = FindLowestCost(costs, random_);
  Decision decision;
  decision.index = best.index;
  decision.worker = workers[best.index].name;
  decision.reason = workers.size() == 1 ? Reason::kOnly
                    : best.equals > 1   ? Reason::kTie
                                        : Reason::kLoad;
  decision.known_tokens = workers[best.index].known_tokens;
  decision.candidates = static_cast<uint32_t>(workers.size());
  decision.equals = best.equals;
  return decision;
}

}  // namespace pagoda::placement
