// How the next token of a request is chosen, and which values make sense. What is done with them is
// sampler.h's.
//
// Concurrency: plain values and a plain function.
#ifndef PAGODA_SERVICES_WORKER_SAMPLING_PARAMS_H_
#define PAGODA_SERVICES_WORKER_SAMPLING_PARAMS_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace pagoda::worker {

struct SamplingParams {
  float temperature = 0.0f;  // 0 = greedy; otherwise in [1e-5, 1e5]
  int32_t top_k = 0;         // 0 = off
  float top_p = 1.0f;        // in (0, 1]; 1 = off
  float min_p = 0.0f;        // in [0, 1]; 0 = off
  uint64_t seed = 0;         // always set by the caller, also if the client gave none
  uint32_t choice = 0;       // index among the n choices of one request
};

// Below it 1 / temperature times a difference of logits could overflow; vLLM calls that greedy.
inline constexpr float kMinTemperature = 1e-5f;
inline constexpr float kMaxTemperature = 1e5f;

// Errors: INVALID_ARGUMENT naming the field, its value and its range.
inline Status CheckSamplingParams(const SamplingParams& params) {
  const float t = params.temperature;
  if (!(t == 0.0f || (t >= kMinTemperature && t <= kMaxTemperature))) {
    return absl::InvalidArgumentError("temperature: " + std::to_string(t) +
                                      " is neither 0 nor between 0.00001 and 100000");
  }
  if (params.top_k < 0) {
    return absl::InvalidArgumentError("top_k: " + std::to_string(params.top_k) + " is below 0");
  }
  if (!(params.top_p > 0.0f && params.top_p <= 1.0f)) {
    return absl::InvalidArgumentError("top_p: " + std::to_string(params.top_p) +
                                      " is not above 0 and at most 1");
  }
  if (!(params.min_p >= 0.0f && params.min_p <= 1.0f)) {
    return absl::InvalidArgumentError("min_p: " + std::to_string(params.min_p) +
                                      " is not between 0 and 1");
  }
  return absl::OkStatus();
}

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_SAMPLING_PARAMS_H_
