// One request as the worker's service hands it to the engine, and what it gets back. Plain data: no
// proto, no gRPC; the service translates.
//
// Concurrency: values; a TokenSink is called by the engine thread only.
#ifndef PAGODA_SERVICES_WORKER_GENERATION_REQUEST_H_
#define PAGODA_SERVICES_WORKER_GENERATION_REQUEST_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/kv/block_key.h"
#include "common/kv/block_key_chain.h"
#include "services/worker/penalties.h"
#include "services/worker/step_plan.h"

namespace pagoda::worker {

// Where the blocks of a request are looked for and put. Namespaces: common/kv/identity.h.
struct CacheUse {
  CacheScope scope = CacheScope::None();
  Namespace tenant_namespace;
  Namespace shared_namespace;
  // For the record's meta and the store's accounts.
  std::string tenant;
  uint32_t tenant_generation = 0;
};

struct GenerationRequest {
  std::string request_id;  // for logs and store calls
  std::string traceparent;

  std::vector<TokenId> prompt_ids;
  // Already delivered by an earlier attempt: not sampled, not sent again, not counted as prompt.
  std::vector<TokenId> output_ids;

  SamplingParams sampling;
  PenaltyParams penalties;
  std::shared_ptr<LogitsProcessor> mask;  // null: nothing is forbidden
  uint32_t max_tokens = 0;           // counted from the first output token, `output_ids` included
  // All ids that end the generation (the model's own as well, unless the client ignores them). The
  // one that does is sent as the last token.
  std::vector<TokenId> stop_token_ids;

  CacheUse cache;
  // The keys that the router made: checked against ours (count and last). Absent: not checked.
  std::optional<std::vector<BlockKey>> block_keys;

  int32_t priority = 0;  // higher goes first
  Duration age{0};       // waited so long before it came here: moves it forward in its priority
  TimePoint deadline = TimePoint::max();
};

enum class FinishReason : uint8_t { kStop, kLength, kCancelled, kDeadline, kError };

// As v1::Usage. computed + local + ram + disk = prompt_tokens without `output_ids`, unless the
// request ended before its prompt was done.
struct GenerationUsage {
  uint32_t prompt_tokens = 0;
  uint32_t completion_tokens = 0;  // all output tokens, those of earlier attempts included
  uint32_t computed = 0;           // prompt tokens
  uint32_t local = 0;              // prompt tokens and `output_ids`, by where their KV came from
  uint32_t ram = 0;
  uint32_t disk = 0;
  uint32_t recomputed = 0;  // tokens computed again: after a preemption, or `output_ids`
  uint32_t pushed = 0;      // blocks that the store had acknowledged when the request ended
};

struct GenerationResult {
  FinishReason reason = FinishReason::kError;
  Status status;  // OK for kStop and kLength
  GenerationUsage usage;
};

// Takes the tokens of one request. No method may block or throw; all are called on the engine
// thread.
class TokenSink {
 public:
  virtual ~TokenSink() = default;

  // Whether OnToken may be called once more. False pauses this sequence only; who makes room again
  // calls Engine::Wake.
  virtual bool HasRoom() = 0;

  // Before the first OnToken: what is known of the usage by then.
  virtual void OnPromptDone(const GenerationUsage&) {}

  // REQUIRES: HasRoom().
  virtual void OnToken(TokenId token) = 0;

  // Exactly once, last, also without room; the engine drops the sink then.
  virtual void OnFinish(const GenerationResult& result) = 0;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_GENERATION_REQUEST_H_
