#include "services/worker/kv_transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>

#include "common/base/bounded_queue.h"
#include "common/base/testing/metric_value.h"
#include "common/kv/testing/in_memory_block_store.h"
#include "services/worker/testing/fake_model.h"
#include "services/worker/testing/gated_store.h"
#include "services/worker/testing/test_sequences.h"

namespace pagoda::worker {
namespace {

using pagoda::testing::InMemoryBlockStore;
using ::testing::ElementsAre;
using testing::FakeModel;
using testing::GatedStore;
using ::testing::HasSubstr;
using testing::MakeSequence;
using testing::Request;
using testing::Tokens;

constexpr int32_t kBlock = 8;
constexpr int32_t kNumBlocks = 16;

class KvTransferTest : public ::testing::Test {
 protected:
  void SetUp() override { Make({}); }
  void TearDown() override { transfer_.reset(); }

  void Make(KvTransfer::Options options) {
    options.block_tokens = kBlock;
    if (options.space.IsZero()) options.space.bytes[0] = 1;
    transfer_.reset();
    transfer_ = *KvTransfer::Make(options, &store_, &memory_, &metrics_, SystemClock::Get());
    transfer_->SetEventHandler([this](TransferEvent event) { events_.TryPush(std::move(event)); });
  }

  std::vector<KvTransfer::LoadBlock> Blocks(int first_block, int count) {
    std::vector<KvTransfer::LoadBlock> blocks;
    for (int i = 0; i < count; ++i) {
      blocks.push_back({sequence_->refs()[i], sequence_->NamespaceOf(i), BlockId{first_block + i}});
    }
    return blocks;
  }
  void Fill(int block, int value) {
    std::memset(memory_.Bytes(BlockId{block}).data(), value, memory_.block_bytes());
  }
  bool Holds(int block, int value) {
    for (std::byte byte : memory_.Bytes(BlockId{block})) {
      if (byte != std::byte(value)) return false;
    }
    return true;
  }

  // Pushes the sequence's first blocks, block i full of i + 1, and waits for the answers.
  void PushBlocks(int count) {
    for (int i = 0; i < count; ++i) Fill(i, i + 1);
    auto pushed = std::make_shared<std::atomic<uint32_t>>(0);
    transfer_->Push(sequence_->request(), Blocks(0, count), pushed);
    WaitForPushes();
  }
  void WaitForPushes() {
    while (Value("kv_push_pending_blocks") != 0) std::this_thread::yield();
  }

  void Load(LoadId load, int first_block, int count) {
    transfer_->Load(load, sequence_->request(), Blocks(first_block, count), TimePoint::max());
  }
  // The outcomes of the next `count` loaded blocks, by entry.
  std::vector<bool> Loaded(int count) {
    std::vector<bool> ok(count);
    for (int i = 0; i < count; ++i) {
      auto event = std::get<BlockLoaded>(*events_.Pop());
      ok[event.entry] = event.ok;
    }
    return ok;
  }
  std::vector<bool> Lookup(std::vector<BlockRef> refs, int first) {
    transfer_->Lookup(SequenceId{5}, sequence_->request(), std::move(refs), first,
                      TimePoint::max());
    auto event = std::get<LookupDone>(*events_.Pop());
    EXPECT_EQ(event.sequence, SequenceId{5});
    return event.held;
  }

  // The value of a metric, named with its label as it is rendered.
  double Value(const std::string& series) {
    std::optional<double> value = pagoda::testing::MetricValue(metrics_, series);
    EXPECT_TRUE(value) << series;
    return value.value_or(0);
  }
  double Pushes(const std::string& result) {
    return Value("kv_push_blocks_total{result=\"" + result + "\"}");
  }
  double Loads(const std::string& result) {
    return Value("kv_load_blocks_total{result=\"" + result + "\"}");
  }

  Metrics metrics_;
  FakeModel memory_{kNumBlocks, kBlock, 100};
  InMemoryBlockStore held_;
  GatedStore store_{&held_};
  BoundedQueue<TransferEvent> events_{1000};
  std::unique_ptr<Sequence> sequence_ = MakeSequence(1, Request(Tokens(100), 1), kBlock);
  std::unique_ptr<KvTransfer> transfer_;
};

TEST_F(KvTransferTest, WhatIsPushedCanBeLoadedIntoOtherBlocks) {
  PushBlocks(3);
  EXPECT_EQ(Pushes("stored"), 3);
  Load(LoadId{1}, 8, 3);
  EXPECT_THAT(Loaded(3), ElementsAre(true, true, true));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Holds(8 + i, i + 1));
  EXPECT_EQ(Loads("loaded"), 3);
}

TEST_F(KvTransferTest, CountsForTheRequestWhatTheStoreHasAcknowledged) {
  PushBlocks(2);
  auto pushed = std::make_shared<std::atomic<uint32_t>>(0);
  transfer_->Push(sequence_->request(), Blocks(0, 3), pushed);
  WaitForPushes();
  EXPECT_EQ(*pushed, 3u);
  EXPECT_EQ(Pushes("have"), 2);
}

TEST_F(KvTransferTest, R3ThePoolsBlockMayChangeAsSoonAsPushReturns) {
  store_.Close();
  Fill(0, 1);
  auto pushed = std::make_shared<std::atomic<uint32_t>>(0);
  transfer_->Push(sequence_->request(), Blocks(0, 1), pushed);
  Fill(0, 0xFF);  // freed and poisoned
  store_.WaitForCalls(1);
  store_.Open();
  WaitForPushes();
  Load(LoadId{1}, 8, 1);
  EXPECT_THAT(Loaded(1), ElementsAre(true));
  EXPECT_TRUE(Holds(8, 1));
}

TEST_F(KvTransferTest, ALookupSaysWhichBlocksAreHeldByTheirNumberInTheSequence) {
  PushBlocks(3);
  held_.Erase(sequence_->refs()[1].key);
  auto refs = sequence_->refs();
  EXPECT_THAT(Lookup({refs.begin() + 1, refs.begin() + 4}, 1),
              ElementsAre(false, false, true, false));
}

TEST_F(KvTransferTest, AFailedLookupHoldsNothing) {
  PushBlocks(1);
  store_.Close();
  transfer_->Lookup(SequenceId{5}, sequence_->request(), {sequence_->refs()[0]}, 0,
                    TimePoint::max());
  store_.WaitForCalls(1);
  store_.FailWaiting(absl::UnavailableError("dead"));
  EXPECT_THAT(std::get<LookupDone>(*events_.Pop()).held, ElementsAre(false));
}

// R29, R31
TEST_F(KvTransferTest, FewerBlocksThanPromisedIsAnAnswerForEachBlock) {
  PushBlocks(3);
  held_.Erase(sequence_->refs()[1].key);
  Load(LoadId{1}, 8, 3);
  EXPECT_THAT(Loaded(3), ElementsAre(true, false, true));
  EXPECT_EQ(Loads("missing"), 1);
}

TEST_F(KvTransferTest, ACorruptBlockIsNotUsed) {
  PushBlocks(2);
  held_.Corrupt(sequence_->refs()[0].key);
  Load(LoadId{1}, 8, 2);
  EXPECT_THAT(Loaded(2), ElementsAre(false, true));
  EXPECT_EQ(Loads("corrupt"), 1);
}

TEST_F(KvTransferTest, R8ABlockOfAnotherSpaceIsRefusedBeforeAByteIsTakenAndReported) {
  PushBlocks(1);
  KvTransfer::Options other;
  other.space.bytes[0] = 2;
  Make(other);
  Fill(8, 0x55);
  Load(LoadId{1}, 8, 1);
  EXPECT_THAT(Loaded(1), ElementsAre(false));
  EXPECT_EQ(Loads("refused"), 1);
  EXPECT_TRUE(Holds(8, 0x55));
  EXPECT_EQ(held_.num_blocks(), 0u) << "it was reported, and nobody is given it again";
}

TEST_F(KvTransferTest, R8ABlockOfAnotherSizeIsRefusedAndReported) {
  PushBlocks(1);
  FakeModel larger(kNumBlocks, 4 * kBlock, 100);
  KvTransfer::Options options{.space = {}};
  options.space.bytes[0] = 1;
  auto transfer = *KvTransfer::Make(options, &store_, &larger, &metrics_, SystemClock::Get());
  transfer->SetEventHandler([this](TransferEvent event) { events_.TryPush(std::move(event)); });
  transfer->Load(LoadId{1}, sequence_->request(), Blocks(8, 1), TimePoint::max());
  EXPECT_THAT(Loaded(1), ElementsAre(false));
  EXPECT_EQ(held_.num_blocks(), 0u);
}

TEST_F(KvTransferTest, R39ASlowStoreMakesPushesDropAndHoldsNothingUp) {
  Make({.max_staging_bytes = 2 * memory_.block_bytes()});
  store_.Close();
  auto pushed = std::make_shared<std::atomic<uint32_t>>(0);
  transfer_->Push(sequence_->request(), Blocks(0, 5), pushed);
  EXPECT_EQ(Pushes("dropped"), 3);
  EXPECT_EQ(Value("kv_push_pending_blocks"), 2);
  transfer_->Push(sequence_->request(), Blocks(5, 1), pushed);
  EXPECT_EQ(Pushes("dropped"), 4);
  store_.WaitForCalls(1);
  store_.Open();
  WaitForPushes();
  EXPECT_EQ(*pushed, 2u);
}

TEST_F(KvTransferTest, ADeadStoreIsCountedAndItsStagingIsUsedAgain) {
  Make({.max_staging_bytes = memory_.block_bytes()});
  store_.Close();
  auto pushed = std::make_shared<std::atomic<uint32_t>>(0);
  for (int i = 0; i < 3; ++i) {
    // The buffer comes back a little after the answer.
    while (store_.num_waiting() == 0) {
      transfer_->Push(sequence_->request(), Blocks(0, 1), pushed);
      std::this_thread::yield();
    }
    store_.FailWaiting(absl::UnavailableError("dead"));
    WaitForPushes();
  }
  EXPECT_EQ(Pushes("failed"), 3);
  EXPECT_EQ(*pushed, 0u);
}

// Answers every block of a put alike.
class AnsweringStore final : public BlockStore {
 public:
  void FindMissing(const CallContext&, std::vector<BlockRef> refs, FindCallback done) override {
    done(FailedFind(absl::UnimplementedError("put only"), refs.size()));
  }
  void Get(const CallContext&, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) override {
    FailGet(absl::UnimplementedError("put only"), refs.size(), *sink);
  }
  void Put(const CallContext&, std::vector<PutBlock> blocks, PutCallback done) override {
    done(std::vector<PutResult>(blocks.size(), {.outcome = answer}));
  }
  void ReportCorrupt(const CorruptReport&) override {}

  PutOutcome answer = PutOutcome::kStored;
};

TEST_F(KvTransferTest, R66EveryAnswerToAPushIsCounted) {
  AnsweringStore store;
  KvTransfer::Options options{.space = {}, .block_tokens = kBlock};
  options.space.bytes[0] = 1;
  transfer_ = *KvTransfer::Make(options, &store, &memory_, &metrics_, SystemClock::Get());
  transfer_->SetEventHandler([this](TransferEvent event) { events_.TryPush(std::move(event)); });
  for (PutOutcome answer : {PutOutcome::kStored, PutOutcome::kHave, PutOutcome::kDivergent,
                            PutOutcome::kNoRoom, PutOutcome::kCorrupt, PutOutcome::kFailed}) {
    store.answer = answer;
    PushBlocks(1);
  }
  EXPECT_EQ(Pushes("stored"), 1);
  EXPECT_EQ(Pushes("have"), 1);
  EXPECT_EQ(Pushes("divergent"), 1);
  EXPECT_EQ(Pushes("no_room"), 1);
  EXPECT_EQ(Pushes("corrupt"), 1);
  EXPECT_EQ(Pushes("failed"), 1);
  transfer_.reset();
}

TEST_F(KvTransferTest, DivergentBlocksAreOneErrorLineThatNamesKeyAndProducer) {
  AnsweringStore store;
  store.answer = PutOutcome::kDivergent;
  KvTransfer::Options options{.space = {}, .producer_instance = 4711, .block_tokens = kBlock};
  options.space.bytes[0] = 1;
  transfer_ = *KvTransfer::Make(options, &store, &memory_, &metrics_, SystemClock::Get());
  ::testing::internal::CaptureStderr();
  PushBlocks(3);
  PushBlocks(2);
  transfer_.reset();
  std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_THAT(log, HasSubstr("\"level\":\"error\""));
  EXPECT_THAT(log, HasSubstr("\"key\":\"" + sequence_->refs()[0].key.ToHex().substr(0, 16) + "\""));
  EXPECT_THAT(log, HasSubstr("\"producer\":4711"));
  EXPECT_EQ(Pushes("divergent"), 5);
}

TEST_F(KvTransferTest, ACancelledLoadAnswersWhenTheStoreHasLetGo) {
  PushBlocks(2);
  store_.Close();
  Load(LoadId{1}, 8, 2);
  store_.WaitForCalls(1);
  EXPECT_EQ(events_.size(), 0u);
  transfer_->CancelLoad(LoadId{1});
  EXPECT_THAT(Loaded(2), ElementsAre(false, false));
  EXPECT_EQ(Loads("failed"), 2);
  transfer_->CancelLoad(LoadId{1});  // ended: nothing happens
}

TEST_F(KvTransferTest, R26CallsThatMissTheirDeadlinesAreCountedByKind) {
  auto missed = [&](const char* call) {
    return Value("kv_deadline_misses_total{call=\"" + std::string(call) + "\"}");
  };
  store_.Close();
  Load(LoadId{1}, 8, 2);
  auto pushed = std::make_shared<std::atomic<uint32_t>>(0);
  transfer_->Push(sequence_->request(), Blocks(0, 2), pushed);
  store_.WaitForCalls(2);
  store_.FailWaiting(absl::DeadlineExceededError("frozen"));
  EXPECT_THAT(Loaded(2), ElementsAre(false, false));
  WaitForPushes();
  transfer_->Lookup(SequenceId{5}, sequence_->request(), {sequence_->refs()[0]}, 0, TimePoint{});
  store_.WaitForCalls(1);
  store_.FailWaiting(absl::CancelledError("given up when it was late"));
  events_.Pop();
  // The counter follows a load's last event.
  while (missed("load") == 0) std::this_thread::yield();
  EXPECT_EQ(missed("lookup"), 1);
  EXPECT_EQ(missed("load"), 1);
  EXPECT_EQ(Loads("failed"), 2);
  EXPECT_EQ(missed("push"), 1);
}

TEST_F(KvTransferTest, WhenTooManyCallsWaitEachStillGetsItsAnswer) {
  // The store blocks its caller, which it must not do: the first call occupies the thread.
  class Blocking final : public BlockStore {
   public:
    void FindMissing(const CallContext&, std::vector<BlockRef> refs, FindCallback done) override {
      gate.Pop();
      done({.status = absl::OkStatus(), .blocks = std::vector<Held>(refs.size())});
    }
    void Get(const CallContext&, std::vector<BlockRef> refs,
             std::shared_ptr<BlockSink> s) override {
      FailGet(absl::UnavailableError(""), refs.size(), *s);
    }
    void Put(const CallContext&, std::vector<PutBlock> blocks, PutCallback done) override {
      done(FailedPut(absl::UnavailableError(""), blocks.size()));
    }
    void ReportCorrupt(const CorruptReport&) override {}
    BoundedQueue<int> gate{1};
  } blocking;
  KvTransfer::Options options{.max_queued_calls = 1};
  auto transfer = *KvTransfer::Make(options, &blocking, &memory_, &metrics_, SystemClock::Get());
  transfer->SetEventHandler([this](TransferEvent event) { events_.TryPush(std::move(event)); });
  for (int i = 0; i < 3; ++i) {
    transfer->Lookup(SequenceId{5}, sequence_->request(), {sequence_->refs()[0]}, 0,
                     TimePoint::max());
  }
  events_.Pop();  // the last one, at least, did not fit into the queue
  transfer->Load(LoadId{1}, sequence_->request(), Blocks(8, 2), TimePoint::max());
  auto pushed = std::make_shared<std::atomic<uint32_t>>(0);
  transfer->Push(sequence_->request(), Blocks(0, 2), pushed);
  blocking.gate.Close();
  transfer->Stop();
  int loaded = 0;
  while (events_.size() > 0) {
    std::optional<TransferEvent> event = events_.Pop();
    loaded += std::holds_alternative<BlockLoaded>(*event);
  }
  EXPECT_EQ(loaded, 2);
  EXPECT_EQ(Value("kv_push_pending_blocks"), 0);
  EXPECT_EQ(Pushes("dropped") + Pushes("failed"), 2);
}

TEST_F(KvTransferTest, StopCallsOffWhatWaitsAndReturnsWhenAllOfItHasEnded) {
  store_.Close();
  Load(LoadId{1}, 8, 2);
  transfer_->Lookup(SequenceId{5}, sequence_->request(), {sequence_->refs()[0]}, 0,
                    TimePoint::max());
  auto pushed = std::make_shared<std::atomic<uint32_t>>(0);
  transfer_->Push(sequence_->request(), Blocks(0, 1), pushed);
  store_.WaitForCalls(3);
  transfer_->Stop();
  EXPECT_EQ(events_.size(), 3u);
  EXPECT_EQ(Pushes("failed"), 1);
}

TEST_F(KvTransferTest, WaitingForTheStoreEndsWithItsLastAnswer) {
  store_.Close();
  auto pushed = std::make_shared<std::atomic<uint32_t>>(0);
  transfer_->Push(sequence_->request(), Blocks(0, 2), pushed);
  store_.WaitForCalls(1);
  transfer_->WaitUntilIdle(SystemClock::Get()->Now());
  EXPECT_EQ(*pushed, 0u) << "a store that does not answer is not waited for longer";
  std::thread opener([this] { store_.Open(); });
  transfer_->WaitUntilIdle(TimePoint::max());
  EXPECT_EQ(*pushed, 2u);
  opener.join();
}

TEST_F(KvTransferTest, BlocksThatNoMessageCanHoldAreRefusedAtStart) {
  class Huge final : public BlockMemory {
   public:
    size_t block_bytes() const override { return kMaxPayloadBytes + 64; }
    std::span<std::byte> Bytes(BlockId) override { return {}; }
  } huge;
  auto transfer = KvTransfer::Make({}, &store_, &huge, &metrics_, SystemClock::Get());
  EXPECT_EQ(transfer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(transfer.status().message()), HasSubstr("67108864"));
}

}  // namespace
}  // namespace pagoda::worker
