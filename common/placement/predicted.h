// The worker where the first token is expected soonest:
//
//   (waiting prefill + prompt tokens it does not hold) * (1 + kDecodeShare * decoding)
//     / prefill rate + time until a seat is free
//
// A seat is waited for once max_num_seqs requests are in flight; it is expected after the mean
// decode time, spread over the seats. That term is what keeps a popular prefix from collapsing onto
// one worker: affinity saves at most one prefill, a full worker costs without bound.
//
// Concurrency: one thread at a time.
#ifndef PAGODA_COMMON_PLACEMENT_PREDICTED_H_
#define PAGODA_COMMON_PLACEMENT_PREDICTED_H_

#include <random>

#include "common/placement/policy.h"

namespace pagoda::placement {

class PredictedPolicy final : public PlacementPolicy {
 public:
  // What one decoding sequence adds to the time of a prefill, as a share of it: about 4 prefill
  // tokens' work in each step of 512.
  static constexpr double kDecodeShare = 1.0 / 128;

  explicit PredictedPolicy(uint64_t seed) : random_(seed) {}

  Decision Choose(uint32_t prompt_tokens, std::span<const WorkerView> workers) override;

 private:
  std::mt19937_64 random_;
};

}  // namespace pagoda::placement

#endif  // PAGODA_COMMON_PLACEMENT_PREDICTED_H_
