#include "services/worker/block_table.h"

#include <gtest/gtest.h>

namespace pagoda::worker {
namespace {

TableBlock Block(int id, BlockState state) { return {BlockId{id}, state, BlockSource::kRam}; }

TEST(BlockTableTest, TheFrontierPassesBlocksThatAreReadyBehindWhatIsComputed) {
  BlockTable table(4);
  table.Set(0, Block(0, BlockState::kComputing));
  table.Set(1, Block(1, BlockState::kReady));
  table.Set(2, Block(2, BlockState::kReady));
  table.AdvanceTo(3);
  EXPECT_EQ(table.frontier(), 3);
  table.AdvanceTo(4);
  EXPECT_EQ(table.frontier(), 12);
  EXPECT_EQ(table.at(0).state, BlockState::kReady);
  EXPECT_EQ(table.frontier_block(), 3);
  EXPECT_EQ(table.at(3).state, BlockState::kEmpty);
}

TEST(BlockTableTest, AChunkEndsBeforeTheNextReadyOrLoadingBlock) {
  BlockTable table(4);
  EXPECT_EQ(table.ChunkLimit(14), 14);
  table.Set(2, Block(2, BlockState::kReady));
  EXPECT_EQ(table.ChunkLimit(14), 8);
  table.Set(1, Block(1, BlockState::kLoading));
  EXPECT_EQ(table.ChunkLimit(14), 4);
  EXPECT_EQ(table.ChunkLimit(3), 3);
}

TEST(BlockTableTest, NothingIsComputedWhereTheFrontierIsLoading) {
  BlockTable table(4);
  table.Set(0, Block(0, BlockState::kLoading));
  EXPECT_EQ(table.ChunkLimit(14), 0);
}

TEST(BlockTableTest, AHoleIsComputedAndTheBlocksBehindItAreStillUsed) {
  BlockTable table(4);
  table.Set(0, Block(0, BlockState::kReady));
  table.Set(2, Block(2, BlockState::kReady));
  table.AdvanceTo(0);
  EXPECT_EQ(table.frontier(), 4);
  EXPECT_EQ(table.ChunkLimit(14), 8);
  table.Set(1, Block(1, BlockState::kComputing));
  table.AdvanceTo(8);
  EXPECT_EQ(table.frontier(), 12);
}

TEST(BlockTableTest, CountsTheEntriesThatHaveABlock) {
  BlockTable table(4);
  table.Set(3, Block(7, BlockState::kLoading));
  EXPECT_EQ(table.size(), 4);
  EXPECT_EQ(table.num_held(), 1);
  table.Set(3, Block(8, BlockState::kReady));
  EXPECT_EQ(table.num_held(), 1);
  table.Set(3, {});
  EXPECT_EQ(table.num_held(), 0);
}

}  // namespace
}  // namespace pagoda::worker
