#include "common/kv/testing/in_memory_block_store.h"

#include "common/kv/testing/test_blocks.h"
#include "gtest/gtest.h"

namespace pagoda::testing {
namespace {

TEST(InMemoryBlockStore, AFullStoreAnswersNoRoomAndKeepsWhatItHas) {
  InMemoryBlockStore store(2 * 64);
  auto blocks = MakeChain(1, 3, 64);
  auto results = PutAndWait(store, blocks);
  EXPECT_EQ(results[1].outcome, PutOutcome::kStored);
  EXPECT_EQ(results[2].outcome, PutOutcome::kNoRoom);
  EXPECT_EQ(store.num_blocks(), 2u);
  EXPECT_TRUE(store.Erase(blocks[0].header.ref.key));
  EXPECT_EQ(PutAndWait(store, {blocks[2]})[0].outcome, PutOutcome::kStored);
}

TEST(InMemoryBlockStore, ABlockWhoseBytesChangedIsCorrupt) {
  InMemoryBlockStore store;
  auto blocks = MakeChain(1, 1, 64);
  PutAndWait(store, blocks);
  ASSERT_TRUE(store.Corrupt(blocks[0].header.ref.key));
  EXPECT_EQ(GetAndWait(store, RefsOf(blocks))->result(0).outcome, GetOutcome::kCorrupt);
}

}  // namespace
}  // namespace pagoda::testing
