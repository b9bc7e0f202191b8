#include "services/worker/engine_metrics.h"

namespace pagoda::worker {
namespace {

prometheus::Counter* BySource(Metrics* metrics, const char* source) {
  return &metrics->Counter("prompt_tokens_by_source_total",
                           "prompt tokens by where their KV came from", {{"source", source}});
}

prometheus::Counter* ByResult(Metrics* metrics, const char* result) {
  return &metrics->Counter("kv_recheck_blocks_total",
                           "loaded blocks chosen to be computed again and compared; a mismatch is "
                           "an alarm: some producer makes wrong blocks",
                           {{"result", result}});
}

prometheus::Counter* ByReason(Metrics* metrics, FinishReason reason) {
  return &metrics->Counter("request_success_total", "ended requests by why they ended",
                           {{"finished_reason", FinishReasonName(reason)}});
}

}  // namespace

const char* FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

EngineMetrics::EngineMetrics(Metrics* metrics)
    : num_requests_running(metrics->Gauge("num_requests_running", "requests in the batch")),
      num_requests_waiting(
          metrics->Gauge("num_requests_waiting", "requests not started, or preempted")),
      kv_cache_usage_perc(
          metrics->Gauge("kv_cache_usage_perc", "share of KV blocks in use, 0 to 1")),
      generation_tokens(metrics->Counter("generation_tokens_total", "tokens sampled")),
      num_preemptions(metrics->Counter("num_preemptions_total", "requests that lost their blocks")),
      time_to_first_token_seconds(metrics->Histogram("time_to_first_token_seconds",
                                                     "from the request's arrival at this worker",
                                                     Metrics::LatencyBuckets())),
      inter_token_latency_seconds(metrics->Histogram("inter_token_latency_seconds",
                                                     "between two tokens of a request",
                                                     Metrics::LatencyBuckets())),
      request_success{
          ByReason(metrics, FinishReason::kStop), ByReason(metrics, FinishReason::kLength),
          ByReason(metrics, FinishReason::kCancelled), ByReason(metrics, FinishReason::kDeadline),
          ByReason(metrics, FinishReason::kError)},
      recheck_blocks{ByResult(metrics, "ok"), ByResult(metrics, "mismatch"),
                     ByResult(metrics, "dropped")},
      prompt_tokens_(metrics->Counter("prompt_tokens_total", "tokens of completed prompts")),
      prompt_tokens_by_source_{BySource(metrics, "computed"), BySource(metrics, "local"),
                               BySource(metrics, "ram"), BySource(metrics, "disk")} {}

void EngineMetrics::CountPrompt(const GenerationUsage& usage) {
  prompt_tokens_.Increment(usage.prompt_tokens);
  const uint32_t by_source[] = {usage.computed, usage.local, usage.ram, usage.disk};
  for (size_t i = 0; i < prompt_tokens_by_source_.size(); ++i) {
    prompt_tokens_by_source_[i]->Increment(by_source[i]);
  }
}

}  // namespace pagoda::worker
