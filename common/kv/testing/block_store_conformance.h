// What every BlockStore must do, whatever it is made of. A store's test includes this header in one
// source file and names its factory:
//
//   INSTANTIATE_TEST_SUITE_P(RamTier, BlockStoreConformance, ::testing::Values(StoreFactory{...}));
//
// Concurrency: the tests call the store from several threads.
#ifndef PAGODA_COMMON_KV_TESTING_BLOCK_STORE_CONFORMANCE_H_
#define PAGODA_COMMON_KV_TESTING_BLOCK_STORE_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "common/base/random.h"
#include "common/kv/testing/test_blocks.h"
#include "gtest/gtest.h"

namespace pagoda::testing {

// A store with room for at least 4 MiB of payload, and what is to be checked after each test.
struct StoreUnderTest {
  std::shared_ptr<BlockStore> store;
  std::function<Status()> check_integrity = [] { return absl::OkStatus(); };
};

struct StoreFactory {
  std::string name;
  std::function<StoreUnderTest()> make;

  friend void PrintTo(const StoreFactory& factory, std::ostream* out) { *out << factory.name; }
};

class BlockStoreConformance : public ::testing::TestWithParam<StoreFactory> {
 protected:
  static constexpr size_t kPayload = 4096;

  void SetUp() override { under_test_ = GetParam().make(); }
  void TearDown() override { EXPECT_TRUE(under_test_.check_integrity().ok()); }
  BlockStore& store() { return *under_test_.store; }

  // Puts them and expects each to be taken.
  void Store(const std::vector<PutBlock>& blocks) {
    for (const PutResult& result : PutAndWait(store(), blocks)) {
      ASSERT_EQ(result.outcome, PutOutcome::kStored) << result.status;
    }
  }

  StoreUnderTest under_test_;
};

TEST_P(BlockStoreConformance, WhatWasPutIsFoundAndReadBackExactly) {
  auto blocks = MakeChain(1, 40, kPayload);
  Store(blocks);
  for (Held held : FindAndWait(store(), RefsOf(blocks)).blocks) EXPECT_TRUE(held);
  for (auto mode : {RecordingSink::Mode::kMemory, RecordingSink::Mode::kLend}) {
    auto sink = GetAndWait(store(), RefsOf(blocks), mode);
    ASSERT_TRUE(sink->EachDoneOnce());
    for (size_t i = 0; i < blocks.size(); ++i) {
      ASSERT_EQ(sink->result(i).outcome, GetOutcome::kFound) << sink->result(i).status;
      EXPECT_NE(sink->result(i).tier, Tier::kNone);
      EXPECT_EQ(sink->header(i), blocks[i].header);
      EXPECT_EQ(sink->bytes(i), blocks[i].payload.bytes());
    }
  }
}

TEST_P(BlockStoreConformance, AMissingBlockIsAnAnswerAmongFoundOnes) {
  auto held = MakeChain(1, 3, kPayload);
  auto missing = MakeChain(2, 2, kPayload);
  Store(held);
  std::vector<BlockRef> refs = {missing[0].header.ref, held[2].header.ref, missing[1].header.ref,
                                held[0].header.ref};
  FindResult found = FindAndWait(store(), refs);
  EXPECT_TRUE(found.status.ok());
  ASSERT_EQ(found.blocks.size(), 4u);
  auto sink = GetAndWait(store(), refs);
  ASSERT_TRUE(sink->EachDoneOnce());
  for (size_t i = 0; i < refs.size(); ++i) {
    EXPECT_EQ(static_cast<bool>(found.blocks[i]), i % 2 == 1);
    EXPECT_EQ(sink->result(i).outcome, i % 2 == 1 ? GetOutcome::kFound : GetOutcome::kMissing);
    EXPECT_TRUE(sink->result(i).status.ok());
  }
}

TEST_P(BlockStoreConformance, TheSameRefTwiceInOneGetIsAnsweredTwice) {
  auto blocks = MakeChain(1, 1, kPayload);
  Store(blocks);
  auto sink = GetAndWait(store(), {blocks[0].header.ref, blocks[0].header.ref});
  ASSERT_TRUE(sink->EachDoneOnce());
  EXPECT_EQ(sink->bytes(0), blocks[0].payload.bytes());
  EXPECT_EQ(sink->bytes(1), blocks[0].payload.bytes());
}

TEST_P(BlockStoreConformance, ASecondPutOfTheSameBytesIsHeldAlready) {
  auto blocks = MakeChain(1, 2, kPayload);
  Store(blocks);
  for (const PutResult& result : PutAndWait(store(), blocks)) {
    EXPECT_EQ(result.outcome, PutOutcome::kHave);
    EXPECT_TRUE(result.status.ok());
  }
}

TEST_P(BlockStoreConformance, OtherBytesUnderAHeldKeyAreRefusedAndTheFirstStay) {
  auto blocks = MakeChain(1, 2, kPayload);
  Store(blocks);
  auto results = PutAndWait(store(), {Diverge(blocks[0]), blocks[1]});
  EXPECT_EQ(results[0].outcome, PutOutcome::kDivergent);
  EXPECT_FALSE(results[0].status.ok());
  EXPECT_EQ(results[1].outcome, PutOutcome::kHave);
  auto sink = GetAndWait(store(), RefsOf(blocks));
  EXPECT_EQ(sink->bytes(0), blocks[0].payload.bytes());
}

TEST_P(BlockStoreConformance, APayloadThatDoesNotFitItsHeaderIsNotStored) {
  auto blocks = MakeChain(1, 3, kPayload);
  blocks[0].header.payload_crc ^= 1;
  blocks[1].payload = OwnedView(std::string(blocks[1].payload.bytes().substr(1)));
  auto results = PutAndWait(store(), blocks);
  EXPECT_EQ(results[0].outcome, PutOutcome::kCorrupt);
  EXPECT_EQ(results[1].outcome, PutOutcome::kCorrupt);
  EXPECT_EQ(results[2].outcome, PutOutcome::kStored);
  FindResult found = FindAndWait(store(), RefsOf(blocks));
  EXPECT_FALSE(found.blocks[0]);
  EXPECT_FALSE(found.blocks[1]);
  EXPECT_TRUE(found.blocks[2]);
}

TEST_P(BlockStoreConformance, AHeaderWithImpossibleSizesIsNotStored) {
  auto blocks = MakeChain(1, 4, kPayload);
  blocks[0].header.payload_bytes = 0;
  blocks[1].header.payload_bytes = UINT64_MAX;
  blocks[2].header.payload_bytes = kMaxPayloadBytes + 1;
  blocks[3].header.ref.anchor = blocks[3].header.ref.key;  // only the first of a run is its anchor
  for (const PutResult& result : PutAndWait(store(), blocks)) {
    EXPECT_EQ(result.outcome, PutOutcome::kCorrupt);
  }
  for (Held held : FindAndWait(store(), RefsOf(blocks)).blocks) EXPECT_FALSE(held);
}

TEST_P(BlockStoreConformance, ASinkThatFindsAForeignNamespaceGetsNoBytesOfThatBlock) {
  auto blocks = MakeChain(1, 3, kPayload);
  Store(blocks);
  auto check = [&](size_t index, const RecordHeader& header) {
    ExpectedBlock expected{blocks[index].header.ref, header.space, header.name_space};
    if (index == 1) expected.name_space.bytes[0] ^= 1;
    return CheckExpected(header, expected);
  };
  auto sink = GetAndWait(store(), RefsOf(blocks), RecordingSink::Mode::kMemory, {}, check);
  ASSERT_TRUE(sink->EachDoneOnce());
  EXPECT_EQ(sink->result(0).outcome, GetOutcome::kFound);
  EXPECT_EQ(sink->result(1).outcome, GetOutcome::kRefused);
  EXPECT_EQ(sink->result(1).status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(sink->bytes(1), "");
  EXPECT_EQ(sink->result(2).outcome, GetOutcome::kFound);
}

TEST_P(BlockStoreConformance, AReportedBlockIsSoonForgottenAndCanBePutAgain) {
  auto blocks = MakeChain(1, 3, kPayload);
  Store(blocks);
  store().ReportCorrupt({MakeChain(2, 1, kPayload)[0].header.ref.key, 0, "of a block not held"});
  store().ReportCorrupt({blocks[1].header.ref.key, 7, "the reader found other bytes"});
  TimePoint limit = SystemClock::Get()->Now() + std::chrono::minutes(4);
  while (FindAndWait(store(), RefsOf(blocks)).blocks[1]) {
    ASSERT_LT(SystemClock::Get()->Now(), limit);
  }
  auto sink = GetAndWait(store(), RefsOf(blocks));
  EXPECT_EQ(sink->bytes(0), blocks[0].payload.bytes());
  EXPECT_EQ(sink->result(1).outcome, GetOutcome::kMissing);
  EXPECT_EQ(sink->bytes(2), blocks[2].payload.bytes());
  Store({blocks[1]});
  EXPECT_EQ(GetAndWait(store(), {blocks[1].header.ref})->bytes(0), blocks[1].payload.bytes());
}

TEST_P(BlockStoreConformance, CallsWithoutBlocksAreAnswered) {
  EXPECT_TRUE(FindAndWait(store(), {}).blocks.empty());
  EXPECT_TRUE(PutAndWait(store(), {}).empty());
  EXPECT_TRUE(GetAndWait(store(), {})->EachDoneOnce());
}

TEST_P(BlockStoreConformance, APassedDeadlineFailsEveryBlock) {
  auto blocks = MakeChain(1, 2, kPayload);
  CallContext late;
  late.deadline = SystemClock::Get()->Now() - std::chrono::seconds(1);
  for (const PutResult& result : PutAndWait(store(), blocks, late)) {
    EXPECT_EQ(result.status.code(), absl::StatusCode::kDeadlineExceeded);
  }
  auto sink = GetAndWait(store(), RefsOf(blocks), RecordingSink::Mode::kMemory, late);
  ASSERT_TRUE(sink->EachDoneOnce());
  EXPECT_EQ(sink->result(0).status.code(), absl::StatusCode::kDeadlineExceeded);
  FindResult found = FindAndWait(store(), RefsOf(blocks), late);
  EXPECT_EQ(found.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(found.blocks.size(), 2u);
}

TEST_P(BlockStoreConformance, ACancelledCallFailsEveryBlock) {
  auto blocks = MakeChain(1, 2, kPayload);
  Store(blocks);
  std::stop_source source;
  source.request_stop();
  CallContext cancelled;
  cancelled.cancel = source.get_token();
  auto sink = GetAndWait(store(), RefsOf(blocks), RecordingSink::Mode::kMemory, cancelled);
  ASSERT_TRUE(sink->EachDoneOnce());
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(sink->result(i).status.code(), absl::StatusCode::kCancelled);
  }
  EXPECT_EQ(PutAndWait(store(), blocks, cancelled)[0].status.code(), absl::StatusCode::kCancelled);
}

TEST_P(BlockStoreConformance, ACancelInMidGetStillAnswersEveryBlockOnceAndThenLetsGo) {
  auto blocks = MakeChain(1, 32, kPayload);
  Store(blocks);
  std::stop_source source;
  CallContext context;
  context.cancel = source.get_token();
  auto cancel_at_third = [&](size_t index, const RecordHeader&) {
    if (index == 2) source.request_stop();
    return absl::OkStatus();
  };
  auto sink =
      GetAndWait(store(), RefsOf(blocks), RecordingSink::Mode::kMemory, context, cancel_at_third);
  ASSERT_TRUE(sink->EachDoneOnce());
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (sink->result(i).outcome == GetOutcome::kFound) {
      EXPECT_EQ(sink->bytes(i), blocks[i].payload.bytes());
    } else {
      EXPECT_EQ(sink->result(i).outcome, GetOutcome::kFailed);
    }
  }
  EXPECT_EQ(sink->result(31).outcome, GetOutcome::kFailed);
}

TEST_P(BlockStoreConformance, MoreBlocksThanACallMayNameAreRefused) {
  std::vector<BlockRef> refs(kMaxBlocksPerCall + 1, MakeChain(1, 1, 16)[0].header.ref);
  EXPECT_EQ(FindAndWait(store(), refs).status.code(), absl::StatusCode::kInvalidArgument);
  auto sink = GetAndWait(store(), refs);
  ASSERT_TRUE(sink->EachDoneOnce());
  EXPECT_EQ(sink->result(0).status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(BlockStoreConformance, LentBytesStayValidAfterTheStoreIsGone) {
  auto blocks = MakeChain(1, 4, kPayload);
  Store(blocks);
  auto sink = GetAndWait(store(), RefsOf(blocks), RecordingSink::Mode::kLend);
  under_test_ = {};
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(sink->bytes(i), blocks[i].payload.bytes());
  }
}

TEST_P(BlockStoreConformance, BlocksOfManySizesLiveTogether) {
  std::vector<PutBlock> all;
  for (size_t bytes : {1, 63, 64, 65, 4095, 4096, 4097, 70'000, 300'001}) {
    for (PutBlock& block : MakeChain(bytes, 2, bytes)) all.push_back(std::move(block));
  }
  Store(all);
  auto sink = GetAndWait(store(), RefsOf(all));
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(sink->bytes(i), all[i].payload.bytes());
}

TEST_P(BlockStoreConformance, ThreadsThatPutAndGetTheSameBlocksSeeExactBytesOrNone) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 25;
  uint64_t seed = RandomId();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::vector<std::vector<PutBlock>> chains;
  for (uint64_t c = 0; c < 4; ++c) chains.push_back(MakeChain(seed + c, 4, kPayload));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      uint64_t state = seed + t;
      for (int round = 0; round < kRounds; ++round) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const std::vector<PutBlock>& chain = chains[(state >> 33) % chains.size()];
        if ((state >> 40) % 2 == 0) {
          for (const PutResult& result : PutAndWait(store(), chain)) {
            EXPECT_TRUE(result.outcome == PutOutcome::kStored ||
                        result.outcome == PutOutcome::kHave ||
                        result.outcome == PutOutcome::kNoRoom)
                << result.status;
          }
        } else {
          auto sink = GetAndWait(store(), RefsOf(chain));
          EXPECT_TRUE(sink->EachDoneOnce());
          for (size_t i = 0; i < chain.size(); ++i) {
            if (sink->result(i).outcome == GetOutcome::kMissing) continue;
            ASSERT_EQ(sink->result(i).outcome, GetOutcome::kFound) << sink->result(i).status;
            EXPECT_EQ(sink->bytes(i), chain[i].payload.bytes());
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace pagoda::testing

#endif  // PAGODA_COMMON_KV_TESTING_BLOCK_STORE_CONFORMANCE_H_
