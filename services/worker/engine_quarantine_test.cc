// A store that gives wrong bytes under valid checksums: what the engine does when it finds out.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <thread>

#include "common/base/crc32c.h"
#include "common/base/testing/metric_value.h"
#include "common/kv/testing/in_memory_block_store.h"
#include "services/worker/engine.h"
#include "services/worker/testing/engine_harness.h"
#include "services/worker/testing/fake_model.h"
#include "services/worker/testing/test_sequences.h"

namespace pagoda::worker {
namespace {

using pagoda::testing::InMemoryBlockStore;
using testing::Client;
using testing::FakeModel;
using testing::MakeSequence;
using testing::Request;
using testing::Tokens;

constexpr int32_t kBlock = 8;
constexpr int32_t kPoolBlocks = 64;
constexpr uint32_t kVocabulary = 1000;
constexpr FakeModel::Slot kNan = 0x7FC00000'7FC00000;  // two quiet NaNs

struct Worker {
  Worker(BlockStore* store, uint64_t instance, uint32_t recheck_one_in = 0) {
    transfer = *KvTransfer::Make({.producer_instance = instance, .block_tokens = kBlock}, store,
                                 &model, &metrics, &clock);
    Engine::Options options;
    options.vocabulary_size = kVocabulary;
    options.max_model_len = 400;
    options.num_blocks = kPoolBlocks;
    options.scheduler.block_tokens = kBlock;
    options.scheduler.max_num_batched_tokens = 64;
    options.recheck = {.one_in = recheck_one_in, .seed = 1};
    options.poison_freed_blocks = true;
    engine.emplace(options, &model, &model, transfer.get(), &engine_metrics, &clock);
    // A row that reads a NaN gives NaNs.
    model.before_launch = [this](const StepPlan& plan) {
      reads_nan.clear();
      for (int32_t i = 0; i < plan.num_samples; ++i) reads_nan.push_back(ReadsNan(plan, i));
      return absl::OkStatus();
    };
    model.before_collect = [this](StepResult& result) {
      for (size_t i = 0; i < result.samples.size(); ++i) {
        if (reads_nan[i]) result.samples[i].outcome = SampleOutcome::kNonFiniteLogits;
      }
    };
  }

  bool ReadsNan(const StepPlan& plan, int32_t sample) {
    for (int32_t s = 0; s < plan.num_slices; ++s) {
      const PlanSlice& slice = plan.slices[s];
      const int32_t row = plan.samples[sample].row;
      if (row < slice.first_row || row >= slice.first_row + slice.num_rows) continue;
      for (int32_t i = 0; i < slice.num_blocks; ++i) {
        BlockId block{plan.block_tables[slice.first_block + i]};
        FakeModel::Slot first;
        std::memcpy(&first, model.Bytes(block).data(), sizeof(first));
        if (first == kNan) return true;
      }
    }
    return false;
  }

  std::pair<SequenceId, std::shared_ptr<Client>> Submit(GenerationRequest request,
                                                        size_t room = SIZE_MAX) {
    auto client = std::make_shared<Client>(room);
    StatusOr<SequenceId> id = engine->Submit(std::move(request), client);
    EXPECT_TRUE(id.ok()) << id.status();
    return {*id, client};
  }
  template <typename Done>
  void StepUntil(Done done) {
    for (int i = 0; !done(); ++i) {
      ASSERT_LT(i, 10'000'000) << "no progress";
      engine->RunOnce(TimePoint{});
      ASSERT_TRUE(engine->CheckIntegrity().ok()) << engine->CheckIntegrity();
    }
  }
  std::shared_ptr<Client> Run(GenerationRequest request) {
    auto client = Submit(std::move(request)).second;
    StepUntil([&] { return client->result().has_value(); });
    return client;
  }
  // Until the store has answered all that was pushed.
  void WaitForPushes() {
    while (Value("kv_push_pending_blocks") != 0) std::this_thread::yield();
  }
  // Until the store has heard all that was reported.
  void WaitForReports() { transfer->Stop(); }
  double Value(const std::string& series) {
    std::optional<double> value = pagoda::testing::MetricValue(metrics, series);
    EXPECT_TRUE(value) << series;
    return value.value_or(0);
  }
  double Rechecks(const std::string& result) {
    return Value("kv_recheck_blocks_total{result=\"" + result + "\"}");
  }
  double Loads(const std::string& result) {
    return Value("kv_load_blocks_total{result=\"" + result + "\"}");
  }

  ManualClock clock;  // stands still: no wait for the store is ever over
  Metrics metrics;
  EngineMetrics engine_metrics{&metrics};
  FakeModel model{kPoolBlocks, kBlock, kVocabulary};
  std::vector<bool> reads_nan;
  std::unique_ptr<KvTransfer> transfer;
  std::optional<Engine> engine;
};

// Does not listen to reports.
class DeafStore final : public BlockStore {
 public:
  explicit DeafStore(BlockStore* inner) : inner_(inner) {}
  void FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                   FindCallback done) override {
    inner_->FindMissing(context, std::move(refs), std::move(done));
  }
  void Get(const CallContext& context, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) override {
    inner_->Get(context, std::move(refs), std::move(sink));
  }
  void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) override {
    inner_->Put(context, std::move(blocks), std::move(done));
  }
  void ReportCorrupt(const CorruptReport&) override {}

 private:
  BlockStore* const inner_;
};

class EngineQuarantineTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kProducer = 11;

  // Another worker computes and pushes the prompt's blocks.
  void Produce(const GenerationRequest& request) {
    Worker producer(&held_, kProducer);
    producer.Run(request);
    producer.WaitForPushes();
  }
  static BlockRef RefOf(const GenerationRequest& request, int32_t index) {
    return MakeSequence(1, request, kBlock)->refs()[index];
  }
  // Block `index` of the request gets other bytes, and the checksum of these.
  void Replace(const GenerationRequest& request, int32_t index, FakeModel::Slot slot) {
    auto payload = std::make_shared<std::array<FakeModel::Slot, kBlock>>();
    payload->fill(slot);
    PutBlock put;
    put.header = {.ref = RefOf(request, index),
                  .token_count = kBlock,
                  .payload_bytes = sizeof(*payload),
                  .payload_crc = Crc32c(payload->data(), sizeof(*payload)),
                  .producer_instance = kProducer};
    put.payload = {reinterpret_cast<const std::byte*>(payload->data()), sizeof(*payload), payload};
    ASSERT_TRUE(held_.Erase(put.header.ref.key));
    std::vector<PutBlock> puts;
    puts.push_back(std::move(put));
    held_.Put({}, std::move(puts), [](const std::vector<PutResult>& results) {
      ASSERT_EQ(results[0].outcome, PutOutcome::kStored) << results[0].status;
    });
  }
  bool StoreHolds(const BlockRef& ref) {
    bool holds = false;
    held_.FindMissing({}, {ref}, [&](const FindResult& found) { holds = bool(found.blocks[0]); });
    return holds;
  }
  static std::vector<TokenId> Alone(const GenerationRequest& request) {
    return FakeModel::Generate(request.prompt_ids, request.max_tokens, request.sampling.seed,
                               kVocabulary);
  }

  ManualClock clock_;  // stands still, as the workers'
  InMemoryBlockStore held_{UINT64_MAX, &clock_};
  GenerationRequest request_ = Request(Tokens(97), 60);  // 12 blocks and a token
};

TEST_F(EngineQuarantineTest, RightBlocksPassTheirRecheckAndNobodySeesIt) {
  Produce(request_);
  Worker worker(&held_, 12, /*recheck_one_in=*/1);
  auto client = worker.Run(request_);
  EXPECT_EQ(client->tokens(), Alone(request_));
  EXPECT_EQ(client->result()->usage.ram, 96u);
  EXPECT_EQ(client->result()->usage.computed, 1u);
  worker.StepUntil([&] { return worker.Rechecks("ok") == 12; });
  EXPECT_EQ(worker.Rechecks("mismatch"), 0);
  EXPECT_EQ(worker.Rechecks("dropped"), 0);
  EXPECT_EQ(worker.Value("prompt_tokens_total"), 97);
  EXPECT_EQ(worker.Value("generation_tokens_total"), 60);
  EXPECT_EQ(worker.Value("num_preemptions_total"), 0);
  EXPECT_FALSE(worker.engine->RunOnce(TimePoint{})) << "nothing is left to do";
  EXPECT_EQ(worker.engine->stats().free_blocks, kPoolBlocks);
}

TEST_F(EngineQuarantineTest, AStepThatRechecksGivesEveryRequestItsNextToken) {
  request_.max_tokens = 200;
  Produce(request_);
  Worker worker(&held_, 12, 1);
  std::vector<std::shared_ptr<Client>> clients = {worker.Submit(request_).second};
  auto count = [&] {
    std::pair<size_t, size_t> tokens_and_live;
    for (const auto& client : clients) {
      tokens_and_live.first += client->tokens().size();
      tokens_and_live.second += !client->result();
    }
    return tokens_and_live;
  };
  double rechecked = 0;
  for (int i = 0; rechecked < 12; ++i) {
    ASSERT_LT(i, 10'000'000) << "no progress";
    auto [tokens, live] = count();
    worker.engine->RunOnce(TimePoint{});
    if (worker.Rechecks("ok") == rechecked) continue;
    rechecked = worker.Rechecks("ok");
    EXPECT_EQ(count().first - tokens, live) << "after " << rechecked << " rechecks";
    // Its prompt takes two steps.
    auto first = static_cast<TokenId>(200 + rechecked * 50);
    if (static_cast<int>(rechecked) % 3 == 0) {
      clients.push_back(worker.Submit(Request(Tokens(100, first), 3)).second);
    }
  }
}

TEST_F(EngineQuarantineTest, ARecheckThatNeverRanIsCountedAsDropped) {
  Produce(request_);
  Worker worker(&held_, 12, 1);
  auto [id, client] = worker.Submit(request_);
  worker.StepUntil([&, c = client] { return c->tokens().size() == 1; });
  worker.model.before_launch = [](const StepPlan&) { return absl::InternalError("broken"); };
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_GT(worker.Rechecks("dropped"), 0);
}

TEST_F(EngineQuarantineTest, AWrongBlockEndsItsReadersAndNothingOfItsProducerIsLoadedAgain) {
  GenerationRequest other = Request(Tokens(97, 500), 5);
  Produce(request_);
  Produce(other);
  Replace(request_, 3, 0x1234);
  Worker worker(&held_, 12, 1);
  auto client = worker.Run(request_);
  ASSERT_EQ(client->result()->reason, FinishReason::kError);
  EXPECT_EQ(client->result()->status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(worker.Rechecks("mismatch"), 1);
  auto again = worker.Run(request_);
  EXPECT_EQ(again->tokens(), Alone(request_));
  EXPECT_EQ(again->result()->usage.computed, 97u) << "neither the pool nor the store gave a block";
  EXPECT_EQ(worker.Run(other)->result()->usage.computed, 97u);
  EXPECT_EQ(worker.Loads("refused"), 12);
  EXPECT_EQ(worker.Rechecks("mismatch"), 1);
}

TEST_F(EngineQuarantineTest, TheStoreForgetsAWrongBlock) {
  Produce(request_);
  Replace(request_, 3, 0x1234);
  Worker worker(&held_, 12, 1);
  worker.Run(request_);
  worker.WaitForReports();
  EXPECT_FALSE(StoreHolds(RefOf(request_, 3)));
  EXPECT_FALSE(StoreHolds(RefOf(request_, 11))) << "what follows it is suspected, too";
}

TEST_F(EngineQuarantineTest, AReaderOfAWrongBlockThatHasNotSampledStartsAgain) {
  Produce(request_);
  Replace(request_, 3, 0x1234);
  Worker worker(&held_, 12, 1);
  auto [first_id, first] = worker.Submit(request_);
  worker.StepUntil([&, c = first] { return c->tokens().size() == 1; });
  auto [id, client] = worker.Submit(request_, 0);
  worker.StepUntil([&, c = first] { return c->result().has_value(); });
  EXPECT_EQ(first->result()->status.code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(client->result());
  client->MakeRoom();
  worker.engine->Wake();
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_EQ(client->tokens(), Alone(request_));
}

TEST_F(EngineQuarantineTest, NonFiniteLogitsQuarantineWhatWasLoadedAndARetrySucceeds) {
  Produce(request_);
  Replace(request_, 5, kNan);
  DeafStore deaf(&held_);
  for (BlockStore* store : {static_cast<BlockStore*>(&deaf), static_cast<BlockStore*>(&held_)}) {
    Worker worker(store, 12);
    auto client = worker.Run(request_);
    EXPECT_EQ(client->result()->status.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(client->result()->usage.ram, 96u);
    auto again = worker.Run(request_);
    EXPECT_EQ(again->result()->reason, FinishReason::kLength) << again->result()->status;
    EXPECT_EQ(again->tokens(), Alone(request_));
    EXPECT_EQ(again->result()->usage.computed, 97u);
    worker.WaitForPushes();
  }
  EXPECT_TRUE(StoreHolds(RefOf(request_, 5))) << "pushed again, right";
  Worker reader(&held_, 13);
  EXPECT_EQ(reader.Run(request_)->tokens(), Alone(request_));
}

TEST_F(EngineQuarantineTest, NonFiniteLogitsBlameNoProducer) {
  GenerationRequest other = Request(Tokens(97, 500), 5);
  Produce(request_);
  Produce(other);
  Replace(request_, 5, kNan);
  Worker worker(&held_, 12);
  worker.Run(request_);
  EXPECT_EQ(worker.Run(other)->result()->usage.ram, 96u);
}

TEST_F(EngineQuarantineTest, WhoSharesASuspectedBlockStartsAgainAndGetsItsTokens) {
  Produce(request_);
  Worker worker(&held_, 12);
  auto [id, client] = worker.Submit(request_);
  worker.StepUntil([&, c = client] { return c->tokens().size() == 10; });
  // The other's logits are not finite for a reason of its own.
  GenerationRequest twin = request_;
  twin.sampling.seed = 1;
  worker.model.before_collect = [](StepResult& result) {
    if (result.samples.size() == 2) result.samples[1].outcome = SampleOutcome::kNonFiniteLogits;
  };
  auto [bad_id, bad] = worker.Submit(twin);
  worker.StepUntil([&, c = bad] { return c->result().has_value(); });
  EXPECT_EQ(bad->result()->reason, FinishReason::kError);
  worker.StepUntil([&, c = client] { return c->result().has_value(); });
  EXPECT_EQ(client->result()->reason, FinishReason::kLength);
  EXPECT_EQ(client->tokens(), Alone(request_));
  EXPECT_GT(client->result()->usage.recomputed, 0u);
}

}  // namespace
}  // namespace pagoda::worker
