// Sequences and sinks for tests of what lies under the engine.
//
// Concurrency: one thread.
#ifndef PAGODA_SERVICES_WORKER_TESTING_TEST_SEQUENCES_H_
#define PAGODA_SERVICES_WORKER_TESTING_TEST_SEQUENCES_H_

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "services/worker/sequence.h"

namespace pagoda::worker::testing {

// first, first + 1, ...
inline std::vector<TokenId> Tokens(int32_t count, TokenId first = 0) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

inline GenerationRequest Request(std::vector<TokenId> prompt, uint32_t max_tokens) {
  GenerationRequest request;
  request.prompt_ids = std::move(prompt);
  request.max_tokens = max_tokens;
  request.cache.scope = CacheScope::Tenant();
  return request;
}

inline std::unique_ptr<Sequence> MakeSequence(uint64_t id, GenerationRequest request,
                                              int32_t block_tokens, TimePoint arrival = {}) {
  BlockKeyChain keys({}, {}, request.cache.scope, block_tokens);
  return std::make_unique<Sequence>(SequenceId{id}, std::move(request), std::move(keys), arrival);
}

}  // namespace pagoda::worker::testing

#endif  // PAGODA_SERVICES_WORKER_TESTING_TEST_SEQUENCES_H_
