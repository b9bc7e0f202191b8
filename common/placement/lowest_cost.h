// The index of the lowest cost; equals are drawn at random, because a fixed tie rule sends every
// first request of a cold cluster to one worker.
//
// Concurrency: plain function.
#ifndef PAGODA_COMMON_PLACEMENT_LOWEST_COST_H_
#define PAGODA_COMMON_PLACEMENT_LOWEST_COST_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>

namespace pagoda::placement {

struct LowestCost {
  size_t index = 0;
  uint32_t equals = 1;  // how many had this cost
};

// REQUIRES: `costs` is not empty. Costs within one part in 10^9 are equal: they differ by rounding.
inline LowestCost FindLowestCost(std::span<const double> costs, std::mt19937_64& random) {
  double lowest = *std::min_element(costs.begin(), costs.end());
  double limit = lowest + 1e-9 * (lowest < 0 ? -lowest : lowest);
  LowestCost best{0, 0};
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] > limit) continue;
    // Reservoir sampling of one: each of the equals is kept with the same probability.
    if (random() % ++best.equals == 0) best.index = i;
  }
  return best;
}

}  // namespace pagoda::placement

#endif  // PAGODA_COMMON_PLACEMENT_LOWEST_COST_H_
