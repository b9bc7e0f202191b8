#include "common/placement/policy.h"

#include "common/placement/least_loaded.h"
#include "common/placement/predicted.h"
#include "common/placement/round_robin.h"

namespace pagoda::placement {

std::string_view ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kOnly:
      return "only";
    case Reason::kPinned:
      return "pinned";
    case Reason::kPrefix:
      return "prefix";
    case Reason::kLoad:
      return "load";
    case Reason::kTie:
      return "tie";
    case Reason::kRoundRobin:
      return "round_robin";
  }
  return "unknown";
}

StatusOr<std::unique_ptr<PlacementPolicy>> MakePolicy(std::string_view name, uint64_t seed) {
  if (name == "predicted") return std::make_unique<PredictedPolicy>(seed);
  if (name == "round_robin") return std::make_unique<RoundRobinPolicy>();
  if (name == "least_loaded") return std::make_unique<LeastLoadedPolicy>(seed);
  return absl::InvalidArgumentError("policy \"" + std::string(name) +
                                    "\" is not one of predicted, round_robin, least_loaded");
}

}  // namespace pagoda::placement
