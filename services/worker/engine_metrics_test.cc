#include "services/worker/engine_metrics.h"

#include <gtest/gtest.h>

#include "common/kv/testing/in_memory_block_store.h"
#include "services/worker/testing/engine_harness.h"
#include "services/worker/testing/test_sequences.h"

namespace pagoda::worker {
namespace {

using pagoda::testing::InMemoryBlockStore;
using testing::Request;
using testing::SmallEngine;
using testing::Tokens;
using testing::Worker;

TEST(EngineMetricsTest, EveryMetricMovesAndPromptTokensAddUpBySource) {
  InMemoryBlockStore store;
  Worker worker(SmallEngine(), &store);
  GenerationRequest request = Request(Tokens(100), 10);
  for (int i = 0; i < 2; ++i) {
    auto [id, client] = worker.Submit(request);
    worker.StepUntil([&, c = client] { return c->tokens().size() == 5; });
    EXPECT_EQ(worker.Value("num_requests_running"), 1);
    EXPECT_GT(worker.Value("kv_cache_usage_perc"), 0);
    worker.StepUntil([&, c = client] { return c->result().has_value(); });
  }
  EXPECT_EQ(worker.Value("num_requests_running"), 0);
  EXPECT_EQ(worker.Value("kv_cache_usage_perc"), 0);
  EXPECT_EQ(worker.Value("prompt_tokens_total"), 200);
  EXPECT_EQ(worker.Value("prompt_tokens_by_source_total{source=\"computed\"}"), 104);
  EXPECT_EQ(worker.Value("prompt_tokens_by_source_total{source=\"local\"}"), 96);
  EXPECT_EQ(worker.Value("generation_tokens_total"), 20);
  EXPECT_EQ(worker.Value("request_success_total{finished_reason=\"length\"}"), 2);
  EXPECT_EQ(worker.Value("time_to_first_token_seconds_count"), 2);
  EXPECT_EQ(worker.Value("inter_token_latency_seconds_count"), 18);
  worker.WaitForPushes();
  EXPECT_EQ(worker.Value("kv_push_blocks_total{result=\"stored\"}"), 13);
  EXPECT_EQ(worker.engine->stats().steps, worker.model.launches);
}

TEST(EngineMetricsTest, R66EachSourceOfPromptTokensIsCounted) {
  Worker worker(SmallEngine());
  EngineMetrics metrics(&worker.metrics);
  metrics.CountPrompt({.prompt_tokens = 10, .computed = 1, .local = 2, .ram = 3, .disk = 4});
  EXPECT_EQ(worker.Value("prompt_tokens_by_source_total{source=\"computed\"}"), 1);
  EXPECT_EQ(worker.Value("prompt_tokens_by_source_total{source=\"local\"}"), 2);
  EXPECT_EQ(worker.Value("prompt_tokens_by_source_total{source=\"ram\"}"), 3);
  EXPECT_EQ(worker.Value("prompt_tokens_by_source_total{source=\"disk\"}"), 4);
}

TEST(EngineMetricsTest, RequestsThatWaitAreCounted) {
  Engine::Options options = SmallEngine();
  options.scheduler.max_num_seqs = 1;
  Worker worker(options);
  auto [first_id, first] = worker.Submit(Request(Tokens(10), 5));
  auto [second_id, second] = worker.Submit(Request(Tokens(10, 100), 5));
  worker.engine->RunOnce(TimePoint{});
  EXPECT_EQ(worker.Value("num_requests_waiting"), 1);
  EXPECT_EQ(worker.engine->stats().waiting, 1);
  EXPECT_EQ(worker.engine->stats().pending_prefill_tokens, 9);
  worker.StepUntil([&, c = second] { return c->result().has_value(); });
  EXPECT_EQ(worker.Value("num_requests_waiting"), 0);
}

}  // namespace
}  // namespace pagoda::worker
