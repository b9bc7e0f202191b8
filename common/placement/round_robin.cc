#include "common/placement/round_robin.h"

#include <algorithm>

namespace pagoda::placement {

Decision RoundRobinPolicy::Choose(uint32_t, std::span<const WorkerView> workers) {
  auto next = std::find_if(workers.begin(), workers.end(),
                           [&](const WorkerView& worker) { return worker.name > last_; });
  if (next == workers.end()) next = workers.begin();
  last_ = next->name;
  Decision decision;
  decision.index = static_cast<size_t>(next - workers.begin());
  decision.worker = next->name;
  decision.reason = workers.size() == 1 ? Reason::kOnly : Reason::kRoundRobin;
  decision.known_tokens = next->known_tokens;
  decision.candidates = static_cast<uint32_t>(workers.size());
  return decision;
}

}  // namespace pagoda::placement
