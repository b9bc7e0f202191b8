#include "common/base/cpu_count.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

// A folder that looks like /proc/self/cgroup and /sys/fs/cgroup.
class CpuCountTest : public testing::Test {
 protected:
  CpuCountTest() {
    std::string pattern = testing::TempDir() + "/cpu_count_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    files_ = {folder_ / "membership", folder_ / "root"};
  }
  ~CpuCountTest() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }

  fs::path folder_;
  CgroupFiles files_;
};

TEST_F(CpuCountTest, WithoutCgroupsThereIsNoQuota) {
  EXPECT_EQ(CgroupCpuQuota(files_), std::nullopt);
}

TEST_F(CpuCountTest, Version2QuotaIsReadFromTheOwnGroup) {
  Write("membership", "0::/pod/app\n");
  Write("root/pod/app/cpu.max", "150000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(files_), 1.5);
}

TEST_F(CpuCountTest, ATighterParentWins) {
  Write("membership", "0::/pod/app\n");
  Write("root/pod/app/cpu.max", "400000 100000\n");
  Write("root/pod/cpu.max", "200000 100000\n");
  Write("root/cpu.max", "max 100000\n");
  EXPECT_EQ(CgroupCpuQuota(files_), 2.0);
}

TEST_F(CpuCountTest, MaxIsNoLimit) {
  Write("membership", "0::/\n");
  Write("root/cpu.max", "max 100000\n");
  EXPECT_EQ(CgroupCpuQuota(files_), std::nullopt);
}

TEST_F(CpuCountTest, Version1QuotaIsFoundUnderJoinedControllers) {
  Write("membership", "4:cpuset:/x\n3:cpu,cpuacct:/docker/7\n0::/\n");
  Write("root/cpu,cpuacct/docker/7/cpu.cfs_quota_us", "250000\n");
  Write("root/cpu,cpuacct/docker/7/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuQuota(files_), 2.5);
}

TEST_F(CpuCountTest, Version1MinusOneIsNoLimit) {
  Write("membership", "1:cpu:/\n");
  Write("root/cpu/cpu.cfs_quota_us", "-1\n");
  Write("root/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuQuota(files_), std::nullopt);
}

TEST_F(CpuCountTest, AContainerThatSeesOnlyItsOwnGroupAtTheRootFindsIt) {
  Write("membership", "1:cpu:/docker/0123\n");  // the host's path, not visible inside
  Write("root/cpu/cpu.cfs_quota_us", "300000\n");
  Write("root/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuQuota(files_), 3.0);
}

TEST_F(CpuCountTest, MalformedFilesCountAsUnlimited) {
  Write("membership", "nonsense\n0::\n1:cpu:/a\n");
  Write("root/cpu.max", "-5 0\n");
  Write("root/cpu/a/cpu.cfs_quota_us", "many\n");
  EXPECT_EQ(CgroupCpuQuota(files_), std::nullopt);
}

TEST_F(CpuCountTest, AtLeastOneCpuIsUsable) { EXPECT_GE(UsableCpuCount(), 1); }

}  // namespace
}  // namespace pagoda
