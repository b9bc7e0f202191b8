// What a model is asked in the exactness suite, and what it answers: tokens, and the logits that
// each of them was chosen from.
//
// Concurrency: plain values and functions.
#ifndef PAGODA_TESTS_EXACTNESS_ANSWER_H_
#define PAGODA_TESTS_EXACTNESS_ANSWER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/kv/block_key.h"
#include "services/worker/generation_request.h"
#include "services/worker/sampling_params.h"

namespace pagoda::exactness {

struct Question {
  std::vector<TokenId> prompt;
  uint32_t max_tokens = 0;
  worker::SamplingParams sampling;
};

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<std::vector<float>> logits;  // [tokens][vocabulary]
  worker::GenerationResult result;
};

// Where `got` first differs from the tokens and logits of `right` after the first `from`, in words;
// "" when every token and every bit is the same.
std::string Difference(const Answer& right, const Answer& got, size_t from);

}  // namespace pagoda::exactness

#endif  // PAGODA_TESTS_EXACTNESS_ANSWER_H_
