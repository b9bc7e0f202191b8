#include "services/worker/block_manager.h"

#include <gtest/gtest.h>

#include "services/worker/testing/test_sequences.h"

namespace pagoda::worker {
namespace {

using testing::MakeSequence;
using testing::Request;
using testing::Tokens;

class BlockManagerTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(blocks_.CheckIntegrity().ok()) << blocks_.CheckIntegrity();
  }

  // Computes and publishes the blocks of a prefix; the caller holds them.
  std::vector<BlockId> PublishChain(std::span<const BlockRef> refs) {
    std::vector<BlockId> chain;
    for (const BlockRef& ref : refs) {
      BlockId parent = chain.empty() ? kNoBlock : chain.back();
      chain.push_back(blocks_.Publish(*blocks_.Allocate(), ref.key, parent));
    }
    return chain;
  }
  void ReleaseChain(const std::vector<BlockId>& chain) {
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) blocks_.Release(*it);
  }

  static std::vector<BlockRef> Refs(int count, TokenId first) {
    auto sequence = MakeSequence(1, Request(Tokens(count * 4, first), 1), 4);
    return {sequence->refs().begin(), sequence->refs().end()};
  }

  BlockManager blocks_{4};
  std::vector<BlockRef> a_ = Refs(3, 0);
  std::vector<BlockRef> b_ = Refs(3, 100);
};

TEST_F(BlockManagerTest, GivesEachBlockOnceAndThenNone) {
  std::set<BlockId> given;
  for (int i = 0; i < 4; ++i) given.insert(*blocks_.Allocate());
  EXPECT_EQ(given.size(), 4u);
  EXPECT_FALSE(blocks_.Allocate());
  blocks_.Release(BlockId{2});
  EXPECT_EQ(blocks_.Allocate(), BlockId{2});
}

TEST_F(BlockManagerTest, APublishedBlockIsFoundByKeyAfterItsOwnerIsGone) {
  std::vector<BlockId> chain = PublishChain(a_);
  ReleaseChain(chain);
  EXPECT_EQ(blocks_.num_available(), 4);
  EXPECT_EQ(blocks_.Find(a_[0].key), chain[0]);
  EXPECT_EQ(blocks_.num_available(), 3);
  EXPECT_FALSE(blocks_.Find(b_[0].key));
  blocks_.Release(chain[0]);
}

TEST_F(BlockManagerTest, AProbeNeitherPinsNorTouches) {
  std::vector<BlockId> chain = PublishChain(a_);
  blocks_.Release(chain[2]);
  BlockManager::Probe probe = blocks_.ProbePrefix(a_);
  EXPECT_EQ(probe.matched, 3);
  EXPECT_EQ(probe.cached, 1);
  EXPECT_EQ(blocks_.references(chain[2]), 0);
  EXPECT_EQ(blocks_.ProbePrefix(b_).matched, 0);
}

TEST_F(BlockManagerTest, EvictsLeavesFirstAndTheDeepestOfAChainFirst) {
  ReleaseChain(PublishChain(a_));
  blocks_.Allocate();  // the free one
  EXPECT_EQ(blocks_.ProbePrefix(a_).matched, 3);
  blocks_.Allocate();
  EXPECT_EQ(blocks_.ProbePrefix(a_).matched, 2);
  blocks_.Allocate();
  EXPECT_EQ(blocks_.ProbePrefix(a_).matched, 1);
}

TEST_F(BlockManagerTest, EvictsTheLeastRecentlyUsedLeaf) {
  ReleaseChain(PublishChain(std::span(a_).first(2)));
  ReleaseChain(PublishChain(std::span(b_).first(2)));
  ReleaseChain({*blocks_.Find(a_[0].key), *blocks_.Find(a_[1].key)});  // used again
  blocks_.Allocate();
  EXPECT_EQ(blocks_.ProbePrefix(a_).matched, 2);
  EXPECT_EQ(blocks_.ProbePrefix(b_).matched, 1);
}

TEST_F(BlockManagerTest, NeverEvictsABlockThatIsHeld) {
  PublishChain(a_);
  EXPECT_TRUE(blocks_.Allocate());
  EXPECT_FALSE(blocks_.Allocate());
  EXPECT_EQ(blocks_.ProbePrefix(a_).matched, 3);
}

TEST_F(BlockManagerTest, ASecondBlockOfAKeyIsGivenBackForTheFirst) {
  std::vector<BlockId> chain = PublishChain(std::span(a_).first(1));
  BlockId twin = *blocks_.Allocate();
  EXPECT_EQ(blocks_.Publish(twin, a_[0].key, kNoBlock), chain[0]);
  EXPECT_EQ(blocks_.references(chain[0]), 2);
  EXPECT_EQ(blocks_.references(twin), 0);
  EXPECT_EQ(blocks_.TakeFreed(), std::vector<BlockId>{twin});
}

TEST_F(BlockManagerTest, ReportsBlocksWhoseBytesNobodyNeeds) {
  std::vector<BlockId> chain = PublishChain(a_);
  BlockId own = *blocks_.Allocate();
  ReleaseChain(chain);
  EXPECT_TRUE(blocks_.TakeFreed().empty()) << "cached blocks are still needed";
  blocks_.Release(own);
  EXPECT_EQ(blocks_.TakeFreed(), std::vector<BlockId>{own});
  blocks_.Allocate();
  blocks_.Allocate();  // evicts
  EXPECT_EQ(blocks_.TakeFreed(), std::vector<BlockId>{chain[2]});
}

TEST_F(BlockManagerTest, ASharedBlockIsFreeOnlyWhenItsLastOwnerIsGone) {
  BlockId block = *blocks_.Allocate();
  blocks_.Retain(block);
  blocks_.Release(block);
  EXPECT_EQ(blocks_.num_available(), 3);
  blocks_.Release(block);
  EXPECT_EQ(blocks_.num_available(), 4);
}

TEST_F(BlockManagerTest, UnindexingABlockTakesEverythingBelowItOutOfTheIndex) {
  std::vector<BlockId> chain = PublishChain(a_);
  blocks_.SetProducer(chain[1], 7);
  blocks_.Release(chain[2]);  // cached
  std::vector<BlockManager::Unindexed> gone = blocks_.Unindex(a_[1].key);
  ASSERT_EQ(gone.size(), 2u);
  for (const BlockManager::Unindexed& block : gone) {
    EXPECT_EQ(block.producer.has_value(), block.key == a_[1].key);
  }
  EXPECT_EQ(blocks_.ProbePrefix(a_).matched, 1);
  EXPECT_EQ(blocks_.TakeFreed(), std::vector<BlockId>{chain[2]}) << "the held one stays";
  EXPECT_EQ(blocks_.references(chain[1]), 1);
  blocks_.Release(chain[1]);
  EXPECT_EQ(blocks_.TakeFreed(), std::vector<BlockId>{chain[1]});
  blocks_.Release(chain[0]);
  EXPECT_EQ(blocks_.num_available(), 4);
  EXPECT_TRUE(blocks_.Unindex(a_[1].key).empty());
}

TEST_F(BlockManagerTest, ABlockThatWasFreedHasNoProducer) {
  BlockId block = *blocks_.Allocate();
  blocks_.SetProducer(block, 7);
  EXPECT_EQ(blocks_.producer(block), 7u);
  blocks_.Release(block);
  EXPECT_EQ(*blocks_.Allocate(), block);
  EXPECT_FALSE(blocks_.producer(block));
}

}  // namespace
}  // namespace pagoda::worker
