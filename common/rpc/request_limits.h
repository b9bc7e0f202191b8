// Limits of a request that the protos promise. The router checks them for clients, the worker again
// because it does not know who calls.
//
// Concurrency: constants.
#ifndef PAGODA_COMMON_RPC_REQUEST_LIMITS_H_
#define PAGODA_COMMON_RPC_REQUEST_LIMITS_H_

#include <cstdint>

namespace pagoda::rpc {

// Of the client; the model's own come on top. The set is searched for each token.
inline constexpr int kMaxStopTokenIds = 256;

// Of one prompt.
inline constexpr uint32_t kMaxChoices = 16;

// Added up for each token.
inline constexpr int kMaxLogitBiases = 1024;

// The sampler divides by it.
inline constexpr float kMinRepetitionPenalty = 0.01f;
inline constexpr float kMaxRepetitionPenalty = 2.0f;
inline constexpr float kMaxPenalty = 2.0f;  // of presence and frequency, either sign
inline constexpr float kMaxLogitBias = 100.0f;

// Higher goes first.
inline constexpr int32_t kMaxPriority = 100;
inline constexpr int32_t kMinPriority = -kMaxPriority;

}  // namespace pagoda::rpc

#endif  // PAGODA_COMMON_RPC_REQUEST_LIMITS_H_
