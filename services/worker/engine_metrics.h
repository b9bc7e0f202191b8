// The engine's Prometheus metrics (names without "pagoda:", which common/base/metrics.h adds).
//
// Concurrency: as the metrics themselves, any thread.
#ifndef PAGODA_SERVICES_WORKER_ENGINE_METRICS_H_
#define PAGODA_SERVICES_WORKER_ENGINE_METRICS_H_

#include <array>

#include "common/base/metrics.h"
#include "services/worker/generation_request.h"

namespace pagoda::worker {

// "stop", "length", "cancelled", "deadline", "error".
const char* FinishReasonName(FinishReason reason);

struct EngineMetrics {
  explicit EngineMetrics(Metrics* metrics);

  // A prompt that became complete: its tokens, in all and by where their KV came from. Each token
  // is counted once, however often its request is preempted.
  void CountPrompt(const GenerationUsage& usage);

  prometheus::Gauge& num_requests_running;
  prometheus::Gauge& num_requests_waiting;
  prometheus::Gauge& kv_cache_usage_perc;  // 0 to 1: share of blocks that are held
  prometheus::Counter& generation_tokens;
  prometheus::Counter& num_preemptions;
  prometheus::Histogram& time_to_first_token_seconds;
  prometheus::Histogram& inter_token_latency_seconds;
  std::array<prometheus::Counter*, 5> request_success;  // by FinishReason
  std::array<prometheus::Counter*, 3> recheck_blocks;   // by BlockRecheck::Outcome

 private:
  prometheus::Counter& prompt_tokens_;
  std::array<prometheus::Counter*, 4> prompt_tokens_by_source_;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_ENGINE_METRICS_H_
