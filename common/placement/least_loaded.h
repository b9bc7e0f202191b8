// The worker with the fewest requests in flight from this router, caches ignored; equals are drawn.
//
// Concurrency: one thread at a time.
#ifndef PAGODA_COMMON_PLACEMENT_LEAST_LOADED_H_
#define PAGODA_COMMON_PLACEMENT_LEAST_LOADED_H_

#include <random>

#include "common/placement/policy.h"

namespace pagoda::placement {

class LeastLoadedPolicy final : public PlacementPolicy {
 public:
  explicit LeastLoadedPolicy(uint64_t seed) : random_(seed) {}

  Decision Choose(uint32_t prompt_tokens, std::span<const WorkerView> workers) override;

 private:
  std::mt19937_64 random_;
};

}  // namespace pagoda::placement

#endif  // PAGODA_COMMON_PLACEMENT_LEAST_LOADED_H_
