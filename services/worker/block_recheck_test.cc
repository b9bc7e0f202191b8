#include "services/worker/block_recheck.h"

#include <gtest/gtest.h>

#include <cstring>

#include "services/worker/testing/fake_model.h"
#include "services/worker/testing/test_sequences.h"

namespace pagoda::worker {
namespace {

using testing::FakeModel;
using testing::MakeSequence;
using testing::Request;
using testing::Tokens;

constexpr int32_t kBlock = 8;
constexpr int32_t kNumBlocks = 4;
constexpr uint64_t kProducer = 7;

class BlockRecheckTest : public ::testing::Test {
 protected:
  BlockRecheck Make(uint32_t one_in, uint64_t seed = 1) {
    return BlockRecheck({.one_in = one_in, .seed = seed}, &blocks_, &model_);
  }

  // The sequence's three blocks as a store would have given them.
  std::vector<BlockId> LoadAll() {
    std::vector<BlockId> chain;
    for (int32_t i = 0; i < 3; ++i) {
      BlockId block = *blocks_.Allocate();
      blocks_.SetProducer(block, kProducer + i);
      auto slots = FakeModel::BlockOf(sequence_->tokens(), i, kBlock);
      std::memcpy(model_.Bytes(block).data(), slots.data(), model_.block_bytes());
      BlockId parent = chain.empty() ? kNoBlock : chain.back();
      chain.push_back(blocks_.Publish(block, sequence_->refs()[i].key, parent));
    }
    return chain;
  }
  void Compute(const BlockRecheck& recheck) {
    plan_.num_rows = plan_.num_slices = plan_.num_block_entries = plan_.num_samples = 0;
    recheck.AppendTo(plan_);
    ASSERT_EQ(plan_.num_rows, kBlock);
    ASSERT_TRUE(model_.Launch(plan_).ok());
  }
  void ExpectNothingHeldBeside(const std::vector<BlockId>& chain) {
    EXPECT_TRUE(blocks_.CheckIntegrity().ok()) << blocks_.CheckIntegrity();
    for (BlockId block : chain) EXPECT_EQ(blocks_.references(block), 1);
    EXPECT_EQ(blocks_.num_available(), kNumBlocks - static_cast<int32_t>(chain.size()));
  }

  FakeModel model_{kNumBlocks, kBlock, 1000};
  BlockManager blocks_{kNumBlocks};
  StepPlan plan_{{.max_num_batched_tokens = 64, .max_num_seqs = 2, .max_blocks_per_seq = 8}};
  std::unique_ptr<Sequence> sequence_ = MakeSequence(1, Request(Tokens(25), 1), kBlock);
};

TEST_F(BlockRecheckTest, ARightBlockIsEqualAndNothingStaysHeld) {
  std::vector<BlockId> chain = LoadAll();
  BlockRecheck recheck = Make(1);
  for (int32_t i = 0; i < 3; ++i) {
    recheck.OnLoaded(*sequence_, i);
    ASSERT_TRUE(recheck.TryStart());
    Compute(recheck);
    EXPECT_EQ(recheck.Finish(true).outcome, BlockRecheck::Outcome::kEqual);
    ExpectNothingHeldBeside(chain);
  }
  EXPECT_FALSE(recheck.TryStart());
}

TEST_F(BlockRecheckTest, OneWrongBitIsFoundAndTheResultSaysWhoseChainItWas) {
  std::vector<BlockId> chain = LoadAll();
  model_.Bytes(chain[1])[63] ^= std::byte{0x80};
  BlockRecheck recheck = Make(1);
  recheck.OnLoaded(*sequence_, 1);
  ASSERT_TRUE(recheck.TryStart());
  Compute(recheck);
  BlockRecheck::Result result = recheck.Finish(true);
  EXPECT_EQ(result.outcome, BlockRecheck::Outcome::kDifferent);
  EXPECT_EQ(result.refs.back(), sequence_->refs()[1]);
  EXPECT_EQ(result.producers, (std::vector<uint64_t>{kProducer, kProducer + 1}));
  EXPECT_EQ(result.first_loaded, 0);
  ExpectNothingHeldBeside(chain);
}

TEST_F(BlockRecheckTest, AStepThatFailedFindsNothingAndHoldsNothing) {
  std::vector<BlockId> chain = LoadAll();
  BlockRecheck recheck = Make(1);
  recheck.OnLoaded(*sequence_, 2);
  ASSERT_TRUE(recheck.TryStart());
  EXPECT_EQ(recheck.Finish(false).outcome, BlockRecheck::Outcome::kDropped);
  ExpectNothingHeldBeside(chain);
}

TEST_F(BlockRecheckTest, IsDroppedWhenEveryBlockIsHeld) {
  std::vector<BlockId> chain = LoadAll();
  BlockId other = *blocks_.Allocate();
  BlockRecheck recheck = Make(1);
  recheck.OnLoaded(*sequence_, 2);
  EXPECT_FALSE(recheck.TryStart());
  EXPECT_EQ(recheck.TakeDropped(), 1);
  blocks_.Release(other);
  ExpectNothingHeldBeside(chain);
}

TEST_F(BlockRecheckTest, IsDroppedWhenTheBlockIsGoneOrWasComputedSince) {
  BlockRecheck recheck = Make(1);
  recheck.OnLoaded(*sequence_, 0);
  EXPECT_FALSE(recheck.TryStart());
  BlockId computed = *blocks_.Allocate();
  blocks_.Publish(computed, sequence_->refs()[0].key, kNoBlock);
  recheck.OnLoaded(*sequence_, 0);
  EXPECT_FALSE(recheck.TryStart());
  EXPECT_EQ(recheck.TakeDropped(), 2);
  ExpectNothingHeldBeside({computed});
}

TEST_F(BlockRecheckTest, ChoosesOneInSoManyByItsSeedAndKeepsABoundedNumber) {
  auto chosen = [this](uint32_t one_in, uint64_t seed) {
    BlockRecheck recheck = Make(one_in, seed);
    std::vector<int> at;
    for (int i = 0; i < 20'000; ++i) {
      recheck.OnLoaded(*sequence_, 0);
      if (recheck.waiting() && !recheck.TryStart()) at.push_back(i);  // no such block: dropped
    }
    return at;
  };
  EXPECT_TRUE(chosen(0, 1).empty());
  EXPECT_EQ(chosen(1, 1).size(), 20'000u);
  EXPECT_GT(chosen(1000, 1).size(), 5u);
  EXPECT_LT(chosen(1000, 1).size(), 60u);
  EXPECT_EQ(chosen(1000, 1), chosen(1000, 1));
  EXPECT_NE(chosen(1000, 1), chosen(1000, 2));
  BlockRecheck recheck = Make(1);
  for (size_t i = 0; i < BlockRecheck::kMaxWaiting + 5; ++i) recheck.OnLoaded(*sequence_, 0);
  EXPECT_EQ(recheck.TakeDropped(), 5);
}

}  // namespace
}  // namespace pagoda::worker
