// What a placement policy sees and answers. Policies are pure functions of these values, their own
// small state and an injected random generator, so that every decision can be replayed.
//
// Concurrency: one thread at a time (placement.h serialises).
#ifndef PAGODA_COMMON_PLACEMENT_POLICY_H_
#define PAGODA_COMMON_PLACEMENT_POLICY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace pagoda::placement {

// One worker as it stands for one request.
struct WorkerView {
  std::string name;
  uint32_t known_tokens = 0;            // of this request's prompt, that the worker should hold
  uint32_t requests = 0;                // in flight there, from this router
  uint32_t decoding = 0;                // of those, past their first token
  uint64_t waiting_prefill_tokens = 0;  // not yet computed for requests before their first token
  uint32_t max_num_seqs = 1;
  double prefill_tokens_per_second = 0;
  double decode_seconds = 0;  // mean time from a request's first token to its end
};

// Why a worker was chosen; a label of a metric, so the set is fixed.
enum class Reason {
  kOnly,    // there was one worker
  kPinned,  // the client named it
  kPrefix,  // least predicted time, thanks to tokens it should hold
  kLoad,    // least predicted time, or fewest requests
  kTie,     // drawn among equals
  kRoundRobin,
};
std::string_view ReasonName(Reason reason);

// A decision with the numbers that it rests on.
struct Decision {
  size_t index = 0;  // into the views
  std::string worker;
  Reason reason = Reason::kOnly;
  uint32_t known_tokens = 0;
  double wait_seconds = 0;
  double prefill_seconds = 0;
  uint32_t candidates = 0;
  uint32_t equals = 1;  // how many were as good
};

class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;

  // REQUIRES: `workers` is not empty and sorted by name.
  virtual Decision Choose(uint32_t prompt_tokens, std::span<const WorkerView> workers) = 0;
};

// "predicted", "round_robin", "least_loaded". Errors: INVALID_ARGUMENT naming the choices.
StatusOr<std::unique_ptr<PlacementPolicy>> MakePolicy(std::string_view name, uint64_t seed);

}  // namespace pagoda::placement

#endif  // PAGODA_COMMON_PLACEMENT_POLICY_H_
