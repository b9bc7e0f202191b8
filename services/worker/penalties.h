// What a request asks for a row of logits before its next token is chosen: no stop token yet
// (min_tokens), likes and dislikes of single tokens (logit_bias), and penalties for tokens that
// have come before.
//
// The order is vLLM's, and each step is one f32 operation a token, so the result is fixed to the
// bit:
//   1. min_tokens: stop tokens are forbidden until so many output tokens exist
//   2. logit_bias: x += bias
//   3. repetition_penalty, tokens of prompt and output: x > 0 ? x / r : x * r (Keskar et al., CTRL,
//      2019, section 4.1, with the sign handled as in `transformers`)
//   4. frequency_penalty: x -= count * f; presence_penalty: x -= p; tokens of the output (as
//      OpenAI's API defines them)
// Penalties depend on the request's prompt and output ids alone: a request that goes on elsewhere
// gets the same ones.
//
// Concurrency: plain values; one thread at a time per Penalties.
#ifndef PAGODA_SERVICES_WORKER_PENALTIES_H_
#define PAGODA_SERVICES_WORKER_PENALTIES_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/status.h"
#include "common/kv/block_key_chain.h"
#include "services/worker/step_plan.h"

namespace pagoda::worker {

struct PenaltyParams {
  uint32_t min_tokens = 0;
  std::vector<std::pair<TokenId, float>> logit_bias;  // each token once
  float repetition_penalty = 1.0f;                    // 1 = off
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;

  bool any() const {
    return min_tokens > 0 || !logit_bias.empty() || repetition_penalty != 1.0f ||
           frequency_penalty != 0.0f || presence_penalty != 0.0f;
  }
};

// Errors: INVALID_ARGUMENT naming the field, its value and its range.
Status CheckPenaltyParams(const PenaltyParams& params, uint32_t vocabulary_size,
                          uint32_t max_tokens);

class Penalties final : public LogitsProcessor {
 public:
  // `params` outlive this. REQUIRES: they pass CheckPenaltyParams.
  Penalties(const PenaltyParams& params, std::span<const TokenId> stop_token_ids,
            std::span<const TokenId> prompt);

  // The next output token.
  void Append(TokenId token);

  void Apply(std::span<float> logits) override;

 private:
  const PenaltyParams& params_;
  const std::vector<TokenId> stop_token_ids_;
  absl::flat_hash_set<TokenId> seen_;              // prompt and output, for the repetition penalty
  absl::flat_hash_map<TokenId, uint32_t> counts_;  // output
  uint32_t num_output_ = 0;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_PENALTIES_H_
