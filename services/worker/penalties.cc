#include "services/worker/penalties.h"

#include <algorithm>
#include <limits>
#include <string>

#include "common/rpc/request_limits.h"

namespace pagoda::worker {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

Status CheckRange(const std::string& field, float value, float min, float max) {
  if (value >= min && value <= max) return absl::OkStatus();  // not NaN
  return absl::InvalidArgumentError(field + ": " + std::to_string(value) + " is not between " +
                                    std::to_string(min) + " and " + std::to_string(max));
}

// A quotient that overflows stays finite, as the sampler needs it.
float Repeated(float x, float penalty) {
  return x > 0.0f ? std::min(x / penalty, std::numeric_limits<float>::max()) : x * penalty;
}

}  // namespace

Status CheckPenaltyParams(const PenaltyParams& params, uint32_t vocabulary_size,
                          uint32_t max_tokens) {
  if (params.min_tokens > max_tokens) {
    return absl::InvalidArgumentError("min_tokens: " + std::to_string(params.min_tokens) +
                                      " is over max_tokens " + std::to_string(max_tokens));
  }
  for (const auto& [token, bias] : params.logit_bias) {
    if (token >= vocabulary_size) {
      return absl::InvalidArgumentError("logit_bias: token " + std::to_string(token) +
                                        " is not below the vocabulary size " +
                                        std::to_string(vocabulary_size));
    }
    PAGODA_RETURN_IF_ERROR(
        CheckRange("logit_bias", bias, -rpc::kMaxLogitBias, rpc::kMaxLogitBias));
  }
  PAGODA_RETURN_IF_ERROR(CheckRange("repetition_penalty", params.repetition_penalty,
                                    rpc::kMinRepetitionPenalty, rpc::kMaxRepetitionPenalty));
  PAGODA_RETURN_IF_ERROR(CheckRange("frequency_penalty", params.frequency_penalty,
                                    -rpc::kMaxPenalty, rpc::kMaxPenalty));
  return CheckRange("presence_penalty", params.presence_penalty, -rpc::kMaxPenalty,
                    rpc::kMaxPenalty);
}

Penalties::Penalties(const PenaltyParams& params, std::span<const TokenId> stop_token_ids,
                     std::span<const TokenId> prompt)
    : params_(params), stop_token_ids_(stop_token_ids.begin(), stop_token_ids.end()) {
  if (params_.repetition_penalty != 1.0f) seen_.insert(prompt.begin(), prompt.end());
}

void Penalties::Append(TokenId token) {
  ++num_output_;
  ++counts_[token];
  if (params_.repetition_penalty != 1.0f) seen_.insert(token);
}

void Penalties::Apply(std::span<float> logits) {
  if (num_output_ < params_.min_tokens) {
    for (TokenId token : stop_token_ids_) {
      if (token < logits.size()) logits[token] = kForbidden;
    }
  }
  for (const auto& [token, bias] : params_.logit_bias) logits[token] += bias;
  for (TokenId token : seen_) logits[token] = Repeated(logits[token], params_.repetition_penalty);
  if (params_.frequency_penalty == 0.0f && params_.presence_penalty == 0.0f) return;
  for (const auto& [token, count] : counts_) {
    logits[token] -= static_cast<float>(count) * params_.frequency_penalty;
    logits[token] -= params_.presence_penalty;
  }
}

}  // namespace pagoda::worker
