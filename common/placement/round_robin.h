// The workers in turn, by name, whatever their load. For comparisons.
//
// Concurrency: one thread at a time.
#ifndef PAGODA_COMMON_PLACEMENT_ROUND_ROBIN_H_
#define PAGODA_COMMON_PLACEMENT_ROUND_ROBIN_H_

#include "common/placement/policy.h"

namespace pagoda::placement {

class RoundRobinPolicy final : public PlacementPolicy {
 public:
  Decision Choose(uint32_t prompt_tokens, std::span<const WorkerView> workers) override;

 private:
  std::string last_;  // a name, not an index: workers come and go between decisions
};

}  // namespace pagoda::placement

#endif  // PAGODA_COMMON_PLACEMENT_ROUND_ROBIN_H_
