#include "common/base/memory_limit.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace pagoda {
namespace {

class MemoryLimitTest : public ::testing::Test {
 protected:
  MemoryLimitTest() : root_(::testing::TempDir() + "/memory_limit_test") {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~MemoryLimitTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  CgroupFiles Files() const { return {root_ + "/membership", root_ + "/cgroup"}; }

  const std::string root_;
};

TEST_F(MemoryLimitTest, TheTightestLevelOfV2Holds) {
  Write("membership", "0::/pods/one\n");
  Write("cgroup/pods/memory.max", "2000000\n");
  Write("cgroup/pods/one/memory.max", "max\n");
  EXPECT_EQ(CgroupMemoryLimit(Files()), 2000000u);
  Write("cgroup/pods/one/memory.max", "1000000\n");
  EXPECT_EQ(CgroupMemoryLimit(Files()), 1000000u);
}

TEST_F(MemoryLimitTest, V1WritesNoLimitAsAHugeNumber) {
  Write("membership", "5:memory:/one\n3:cpu,cpuacct:/one\n");
  Write("cgroup/memory/one/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(CgroupMemoryLimit(Files()), std::nullopt);
  Write("cgroup/memory/one/memory.limit_in_bytes", "4096\n");
  EXPECT_EQ(CgroupMemoryLimit(Files()), 4096u);
}

TEST_F(MemoryLimitTest, ReadsMemAvailable) {
  Write("meminfo", "MemTotal:  100 kB\nMemFree:  10 kB\nMemAvailable:  20 kB\n");
  EXPECT_EQ(AvailableMemory(root_ + "/meminfo"), 20u * 1024);
  EXPECT_EQ(AvailableMemory(root_ + "/nothing"), std::nullopt);
}

TEST_F(MemoryLimitTest, ThisProcessMayTakeSome) { EXPECT_GT(UsableMemoryBytes(), 1u << 20); }

}  // namespace
}  // namespace pagoda
