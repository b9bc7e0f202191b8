#include "services/worker/sampler.h"

#include <algorithm>
#include <limits>

#include "services/worker/philox.h"

namespace pagoda::worker {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

}  // namespace

double DrawUniform(uint64_t seed, uint32_t choice, int32_t position) {
  const std::array<uint32_t, 4> words =
      Philox4x32({static_cast<uint32_t>(position), choice, 0, 0},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

Sampler::Sampler(const kernels::Ops& ops, int32_t vocabulary)
    : ops_(ops), logits_(vocabulary), weights_(vocabulary) {
  candidates_.reserve(vocabulary);
}

int64_t Sampler::ScratchBytes(int32_t vocabulary) {
  return int64_t{vocabulary} * static_cast<int64_t>(2 * sizeof(float) + sizeof(Candidate));
}

SampledToken Sampler::Sample(std::span<const float> logits, const SamplingParams& params,
                             int32_t position) {
  const auto count = static_cast<int64_t>(logits.size());
  const int32_t best = ops_.arg_max(logits.data(), count);
  const float max = logits[best];
  if (max == kForbidden) return {.outcome = SampleOutcome::kNothingAllowed};
  if (params.temperature == 0.0f || params.top_k == 1) {
    return {.token = static_cast<uint32_t>(best)};
  }
  logits_.assign(logits.begin(), logits.end());
  const float scale = 1.0f / params.temperature;
  if (params.min_p > 0.0f) {
    Weigh(max, scale);
    KeepMinP(params.min_p);
  }
  if (params.top_k > 0 && params.top_k < count) KeepTopK(params.top_k);
  if (params.top_p < 1.0f) KeepTopP(params.top_p, Weigh(max, scale));

  const float total = Weigh(max, scale);
  const double target = DrawUniform(params.seed, params.choice, position) * total;
  double sum = 0.0;
  int32_t last = best;  // a total that rounded up may leave the target out of reach
  for (int32_t id = 0; id < count; ++id) {
    if (weights_[id] == 0.0f) continue;
    sum += weights_[id];
    last = id;
    if (sum > target) break;
  }
  return {.token = static_cast<uint32_t>(last)};
}

float Sampler::Weigh(float max, float scale) {
  return ops_.exp_sum({.x = logits_.data(),
                       .count = std::ssize(logits_),
                       .max = max,
                       .scale = scale,
                       .e = weights_.data()});
}

void Sampler::KeepMinP(float min_p) {
  for (size_t id = 0; id < logits_.size(); ++id) {
    if (weights_[id] < min_p) logits_[id] = kForbidden;
  }
}

void Sampler::KeepTopK(int32_t k) {
  // A heap of the k best so far, the worst of them on top.
  candidates_.clear();
  for (int32_t id = 0; id < static_cast<int32_t>(logits_.size()); ++id) {
    const Candidate candidate{logits_[id], id};
    if (static_cast<int32_t>(candidates_.size()) < k) {
      candidates_.push_back(candidate);
      std::push_heap(candidates_.begin(), candidates_.end(), Before);
    } else if (Before(candidate, candidates_.front())) {
      std::pop_heap(candidates_.begin(), candidates_.end(), Before);
      candidates_.back() = candidate;
      std::push_heap(candidates_.begin(), candidates_.end(), Before);
    }
  }
  KeepOnly(candidates_);
}

void Sampler::KeepTopP(float top_p, double total) {
  const auto count = static_cast<int64_t>(logits_.size());
  const double least = (1.0 - double{top_p}) * total / static_cast<double>(count);
  candidates_.clear();
  for (int32_t id = 0; id < count; ++id) {
    if (weights_[id] > 0.0f && weights_[id] >= least) candidates_.push_back({logits_[id], id});
  }
  std::sort(candidates_.begin(), candidates_.end(), Before);
  const double wanted = double{top_p} * total;
  double sum = 0.0;
  size_t kept = 0;
  while (kept < candidates_.size() && sum < wanted) sum += weights_[candidates_[kept++].id];
  KeepOnly({candidates_.data(), kept});
}

void Sampler::KeepOnly(std::span<const Candidate> kept) {
  std::fill(logits_.begin(), logits_.end(), kForbidden);
  for (const Candidate& candidate : kept) logits_[candidate.id] = candidate.logit;
}

}  // namespace pagoda::worker
