#include "services/kvstore/data_dir.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "services/kvstore/testing/temp_folder.h"

namespace pagoda::kvstore {
namespace {

namespace fs = std::filesystem;

class DataDirTest : public ::testing::Test {
 protected:
  void MakeFile(const std::string& folder) {
    fs::create_directories(path_ + "/" + folder);
    std::ofstream(path_ + "/" + folder + "/blocks") << "?";
  }
  bool Exists(const std::string& name) { return fs::exists(path_ + "/" + name); }
  size_t CountDiscarded() {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(path_)) {
      count += entry.path().filename().string().starts_with("discarded-");
    }
    return count;
  }

  const testing::TempFolder folder_;
  const std::string path_ = folder_.path;
};

TEST_F(DataDirTest, TheShardsNameIsKept) {
  std::string first = (*DataDir::Open(path_))->shard_id();
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ((*DataDir::Open(path_))->shard_id(), first);
  std::ofstream(path_ + "/shard_id") << "nonsense";
  std::string fresh = (*DataDir::Open(path_))->shard_id();
  EXPECT_EQ(fresh.size(), 32u);
  EXPECT_EQ((*DataDir::Open(path_))->shard_id(), fresh);
}

TEST_F(DataDirTest, ASecondStoreIsRefusedWithWords) {
  auto first = *DataDir::Open(path_);
  auto second = DataDir::Open(path_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(second.status().message().find("used by another store"), std::string::npos);
  EXPECT_NE(second.status().message().find(path_), std::string::npos);
  first = nullptr;
  EXPECT_TRUE(DataDir::Open(path_).ok());
}

TEST_F(DataDirTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(path_ + "/file") << "?";
  auto opened = DataDir::Open(path_ + "/file/data");
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(opened.status().message().find("file/data"), std::string::npos);
}

TEST_F(DataDirTest, R12AnUnknownVersionIsMovedAsideDeletedAndCounted) {
  EXPECT_EQ((*DataDir::Open(path_))->discarded(), 0);
  MakeFile("v1");
  MakeFile("v2");
  MakeFile("v37");
  MakeFile("vault");
  auto folder = *DataDir::Open(path_);
  EXPECT_EQ(folder->discarded(), 2);
  EXPECT_FALSE(Exists("v2"));
  folder = nullptr;  // the deletion has ended
  EXPECT_EQ(CountDiscarded(), 0u);
  EXPECT_TRUE(Exists("v1/blocks"));
  EXPECT_TRUE(Exists("vault/blocks"));
}

TEST_F(DataDirTest, WhatAKillLeftUndeletedGoesAtTheNextStart) {
  EXPECT_TRUE(DataDir::Open(path_).ok());
  MakeFile("discarded-0");
  EXPECT_EQ((*DataDir::Open(path_))->discarded(), 0);
  EXPECT_EQ(CountDiscarded(), 0u);
}

TEST_F(DataDirTest, AFolderThatNoStoreUsedKeepsWhatItHolds) {
  MakeFile("v2");
  for (int start = 0; start < 3; ++start) {
    EXPECT_EQ((*DataDir::Open(path_))->discarded(), 0);
    EXPECT_TRUE(Exists("v2/blocks")) << "start " << start;
  }
  MakeFile("v3");
  EXPECT_EQ((*DataDir::Open(path_))->discarded(), 1);
  EXPECT_FALSE(Exists("v3"));
}

TEST_F(DataDirTest, AFirstStartThatWasKilledLeavesNobodysFolderToTheNext) {
  MakeFile("v2");
  MakeFile("v3");
  std::ofstream(path_ + "/pagoda-kvstore.lock") << "v2\n";  // and the kill came
  EXPECT_EQ((*DataDir::Open(path_))->discarded(), 0);
  EXPECT_TRUE(Exists("v2/blocks"));
  EXPECT_TRUE(Exists("v3/blocks"));
}

}  // namespace
}  // namespace pagoda::kvstore
