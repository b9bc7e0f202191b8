#include "common/kv/testing/faulty_store.h"

#include <map>
#include <set>

#include "common/kv/testing/in_memory_block_store.h"
#include "common/kv/testing/test_blocks.h"
#include "gtest/gtest.h"

namespace pagoda::testing {
namespace {

constexpr size_t kBytes = 256;

FaultyStore::Choose Always(Fault fault) {
  return [fault](FaultyCall, const BlockRef&) { return fault; };
}

class FaultyStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { PutAndWait(*held_, blocks_); }

  GetResult Get(Fault fault, RecordingSink::Mode mode = RecordingSink::Mode::kMemory) {
    store_.SetChooser(Always(fault));
    sink_ = GetAndWait(store_, RefsOf(blocks_), mode, {}, check_);
    EXPECT_TRUE(sink_->EachDoneOnce());
    return sink_->result(0);
  }
  PutResult Put(Fault fault) {
    store_.SetChooser(Always(fault));
    return PutAndWait(store_, other_)[0];
  }
  bool Holds(const std::vector<PutBlock>& blocks) {
    return static_cast<bool>(FindAndWait(*held_, RefsOf(blocks)).blocks[0]);
  }

  const std::vector<PutBlock> blocks_ = MakeChain(1, 1, kBytes);
  const std::vector<PutBlock> other_ = MakeChain(2, 1, kBytes);
  const std::shared_ptr<InMemoryBlockStore> held_ = std::make_shared<InMemoryBlockStore>();
  FaultyStore store_{held_, Always(Fault::kNone)};
  std::shared_ptr<RecordingSink> sink_;
  std::function<Status(size_t, const RecordHeader&)> check_;
};

TEST_F(FaultyStoreTest, AFlippedBitIsSeenByWhoCopiesTheBytes) {
  EXPECT_EQ(Get(Fault::kCorrupt).outcome, GetOutcome::kCorrupt);
  EXPECT_EQ(Get(Fault::kCorrupt, RecordingSink::Mode::kLend).outcome, GetOutcome::kFound);
  EXPECT_FALSE(CheckPayload(sink_->header(0), sink_->bytes(0)).ok());
}

TEST_F(FaultyStoreTest, APayloadThatLacksAByteIsSeenByWhoCopiesTheBytes) {
  EXPECT_EQ(Get(Fault::kTruncate).outcome, GetOutcome::kCorrupt);
  EXPECT_EQ(Get(Fault::kTruncate, RecordingSink::Mode::kLend).outcome, GetOutcome::kFound);
  EXPECT_EQ(sink_->bytes(0).size(), kBytes - 1);
}

TEST_F(FaultyStoreTest, AnotherBlocksHeaderIsAValidOne) {
  Get(Fault::kOtherBlock);
  EXPECT_NE(sink_->header(0).ref.key, blocks_[0].header.ref.key);
  EXPECT_TRUE(CheckHeader(sink_->header(0)).ok());
}

TEST_F(FaultyStoreTest, AReadThatBreaksOffLeavesHalfOfTheBytesBehind) {
  EXPECT_EQ(Get(Fault::kFail).outcome, GetOutcome::kFailed);
  std::string half(blocks_[0].payload.bytes().substr(0, kBytes / 2));
  EXPECT_EQ(sink_->bytes(0), half + std::string(kBytes / 2, '\0'));
}

TEST_F(FaultyStoreTest, R8ABlockOfAnotherSpaceOrTenantIsTheSinksToRefuse) {
  check_ = [this](size_t, const RecordHeader& header) {
    const RecordHeader& right = blocks_[0].header;
    return CheckExpected(header, {right.ref, right.space, right.name_space});
  };
  for (Fault fault : {Fault::kForeign, Fault::kOtherTenant}) {
    EXPECT_EQ(Get(fault).outcome, GetOutcome::kRefused);
    EXPECT_EQ(sink_->bytes(0), "");
  }
}

TEST_F(FaultyStoreTest, ADivergentBlockPassesEveryCheck) {
  EXPECT_EQ(Get(Fault::kDivergent).outcome, GetOutcome::kFound);
  EXPECT_TRUE(CheckPayload(sink_->header(0), sink_->bytes(0)).ok());
  EXPECT_NE(sink_->bytes(0), blocks_[0].payload.bytes());
}

TEST_F(FaultyStoreTest, LessCanArriveThanWasPromised) {
  store_.SetChooser(Always(Fault::kPromise));
  EXPECT_TRUE(FindAndWait(store_, RefsOf(other_)).blocks[0]);
  EXPECT_EQ(GetAndWait(store_, RefsOf(other_))->result(0).outcome, GetOutcome::kMissing);
  EXPECT_EQ(Get(Fault::kMissing).outcome, GetOutcome::kMissing);
}

TEST_F(FaultyStoreTest, ALookupCanFailOrForget) {
  store_.SetChooser(Always(Fault::kMissing));
  EXPECT_FALSE(FindAndWait(store_, RefsOf(blocks_)).blocks[0]);
  store_.SetChooser(Always(Fault::kFail));
  FindResult failed = FindAndWait(store_, RefsOf(blocks_));
  EXPECT_FALSE(failed.status.ok());
  EXPECT_FALSE(failed.blocks[0]);
}

TEST_F(FaultyStoreTest, PutsCanBeRefusedFailedOrForgotten) {
  EXPECT_EQ(Put(Fault::kNoRoom).outcome, PutOutcome::kNoRoom);
  EXPECT_EQ(Put(Fault::kFail).outcome, PutOutcome::kFailed);
  EXPECT_EQ(Put(Fault::kDivergent).outcome, PutOutcome::kDivergent);
  EXPECT_EQ(Put(Fault::kMissing).outcome, PutOutcome::kStored);
  EXPECT_FALSE(Holds(other_));
  EXPECT_EQ(Put(Fault::kNone).outcome, PutOutcome::kStored);
  EXPECT_TRUE(Holds(other_));
}

// R13. What remains of the contract under any fault: every block is answered once, and bytes that
// a checksum can tell from the right ones are never found.
TEST(FaultyStoreRandomTest, R13UnderRandomFaultsEachBlockIsAnsweredOnceAndWrongBytesAreNeverFound) {
  std::map<Fault, double> rates;
  for (Fault fault : {Fault::kFail, Fault::kMissing, Fault::kPromise, Fault::kNoRoom,
                      Fault::kCorrupt, Fault::kTruncate, Fault::kForeign}) {
    rates[fault] = 0.1;
  }
  auto held = std::make_shared<InMemoryBlockStore>();
  FaultyStore store(held, RandomFaults(7, rates));
  std::set<GetOutcome> gets;
  std::set<PutOutcome> puts;
  for (uint64_t round = 0; round < 200; ++round) {
    auto blocks = MakeChain(round, 5, kBytes);
    for (const PutResult& result : PutAndWait(store, blocks)) puts.insert(result.outcome);
    EXPECT_EQ(FindAndWait(store, RefsOf(blocks)).blocks.size(), blocks.size());
    auto sink = GetAndWait(store, RefsOf(blocks));
    ASSERT_TRUE(sink->EachDoneOnce());
    for (size_t i = 0; i < blocks.size(); ++i) {
      gets.insert(sink->result(i).outcome);
      if (sink->result(i).outcome != GetOutcome::kFound) continue;
      EXPECT_EQ(sink->bytes(i), blocks[i].payload.bytes());
      EXPECT_EQ(sink->header(i).ref, blocks[i].header.ref);
    }
  }
  for (const auto& [fault, rate] : rates) EXPECT_GT(store.count(fault), 0u);
  EXPECT_EQ(gets, (std::set{GetOutcome::kFound, GetOutcome::kMissing, GetOutcome::kCorrupt,
                            GetOutcome::kFailed}));
  EXPECT_EQ(puts, (std::set{PutOutcome::kStored, PutOutcome::kNoRoom, PutOutcome::kFailed}));
}

TEST(FaultyStoreRandomTest, EqualSeedsMakeEqualChoices) {
  auto one = RandomFaults(3, {{Fault::kFail, 0.5}});
  auto same = RandomFaults(3, {{Fault::kFail, 0.5}});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(one(FaultyCall::kGet, {}), same(FaultyCall::kGet, {}));
  }
}

}  // namespace
}  // namespace pagoda::testing
