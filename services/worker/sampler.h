// Chooses the next token from a row of logits, as a function of the row and the request alone.
//
// The order of the steps is vLLM's: temperature, min-p, top-k, top-p (penalties.h comes before).
// Everything is fixed to the bit:
//  - Order of tokens: the larger logit first, equal logits by the lower id. It decides
//    greedy, top-k and top-p, so that exactly k tokens pass top-k.
//  - Weights: e[i] = exp((x[i] - max) * (1 / temperature)), by the kernels' exp; total = their
//    sum in 16 lanes. Dropped tokens count as 0.
//  - min-p (Nguyen et al., Turning Up the Heat, arXiv 2407.01082, section 3): tokens whose weight
//    is below min_p are dropped; the likeliest weighs 1.
//  - top-p: tokens in that order are kept until their weights, added in double, reach
//    top_p * total; the first is always kept. Tokens below (1 - top_p) * total / vocabulary are
//    dropped beforehand: all of them together weigh less than what top-p drops.
//  - Draw: u in [0, 1) from Philox4x32-10 with the seed as key and (position, choice) as
//    counter, 53 bits of the first two words; ids ascending, the first whose weights, added in
//    double, exceed u * total (of the kept tokens, 16 lanes).
// Log probabilities are not here.
//
// Concurrency: one thread per Sampler (it owns scratch); rows do not depend on each other.
#ifndef PAGODA_SERVICES_WORKER_SAMPLER_H_
#define PAGODA_SERVICES_WORKER_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.h"
#include "services/worker/step_plan.h"

namespace pagoda::worker {

// The uniform number in [0, 1) for the token at absolute `position`.
double DrawUniform(uint64_t seed, uint32_t choice, int32_t position);

class Sampler {
 public:
  Sampler(const kernels::Ops& ops, int32_t vocabulary);

  // Bytes of scratch that one Sampler owns.
  static int64_t ScratchBytes(int32_t vocabulary);

  // `logits` are finite, or -infinity where a mask forbids the token. `position` is the sampled
  // token's. REQUIRES: params pass CheckSamplingParams.
  SampledToken Sample(std::span<const float> logits, const SamplingParams& params,
                      int32_t position);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };

  static bool Before(const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }
  // Weighs logits_ into weights_; returns the sum.
  float Weigh(float max, float scale);
  // REQUIRES, as KeepTopP: weights_ are those of logits_.
  void KeepMinP(float min_p);
  void KeepTopK(int32_t k);
  void KeepTopP(float top_p, double total);
  // Everything but `kept` becomes -infinity.
  void KeepOnly(std::span<const Candidate> kept);

  const kernels::Ops& ops_;
  std::vector<float> logits_;          // the row, with dropped tokens at -infinity
  std::vector<float> weights_;         // e
  std::vector<Candidate> candidates_;  // reserved for the whole vocabulary
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_SAMPLER_H_
