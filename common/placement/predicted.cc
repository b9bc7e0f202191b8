#include "common/placement/predicted.h"

#include <algorithm>
#include <vector>

#include "common/placement/lowest_cost.h"

namespace pagoda::placement {
namespace {

struct Prediction {
  double wait = 0;     // seconds
  double prefill = 0;  // seconds
};

Prediction Predict(uint32_t prompt_tokens, uint32_t known_tokens, const WorkerView& worker) {
  double rate = std::max(worker.prefill_tokens_per_second, 1.0);
  double slowdown = 1 + PredictedPolicy::kDecodeShare * worker.decoding;
  // The last prompt token is always computed.
  uint32_t missing = prompt_tokens > known_tokens ? prompt_tokens - known_tokens : 1;
  Prediction result;
  result.wait = static_cast<double>(worker.waiting_prefill_tokens) * slowdown / rate;
  result.prefill = missing * slowdown / rate;
  uint32_t seats = std::max(worker.max_num_seqs, 1u);
  if (worker.requests >= seats) {
    result.wait += (worker.requests - seats + 1) * worker.decode_seconds / seats;
  }
  return result;
}

}  // namespace

Decision PredictedPolicy::Choose(uint32_t prompt_tokens, std::span<const WorkerView> workers) {
  std::vector<double> costs, blind_costs;  // blind: as if nothing were known of any cache
  for (const WorkerView& worker : workers) {
    Prediction prediction = Predict(prompt_tokens, worker.known_tokens, worker);
    Prediction blind = Predict(prompt_tokens, 0, worker);
    costs.push_back(prediction.wait + prediction.prefill);
    blind_costs.push_back(blind.wait + blind.prefill);
  }
  LowestCost best = FindLowestCost(costs, random_);
  const WorkerView& chosen = workers[best.index];
  Prediction prediction = Predict(prompt_tokens, chosen.known_tokens, chosen);
  // Without what it knows of caches, would another have been as good?
  bool rivalled = false;
  for (size_t i = 0; i < workers.size(); ++i) {
    rivalled |= i != best.index && blind_costs[i] <= blind_costs[best.index];
  }

  Decision decision;
  decision.index = best.index;
  decision.worker = chosen.name;
  decision.known_tokens = chosen.known_tokens;
  decision.wait_seconds = prediction.wait;
  decision.prefill_seconds = prediction.prefill;
  decision.candidates = static_cast<uint32_t>(workers.size());
  decision.equals = best.equals;
  if (workers.size() == 1) {
    decision.reason = Reason::kOnly;
  } else if (best.equals > 1) {
    decision.reason = Reason::kTie;
  } else {
    decision.reason = chosen.known_tokens > 0 && rivalled ? Reason::kPrefix : Reason::kLoad;
  }
  return decision;
}

}  // namespace pagoda::placement
