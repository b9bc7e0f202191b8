#include "common/base/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <thread>

namespace pagoda {
namespace {

int AffinityCount() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails only on machines with more than 1,024 CPUs; then the library asks in its own way.
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

std::optional<double> Ratio(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return std::nullopt;
  return quota / period;
}

// "200000 100000", or "max 100000" for no limit.
std::optional<double> ReadV2(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period)) return std::nullopt;
  return Ratio(quota, period);
}

// A quota of -1 is no limit.
std::optional<double> ReadV1(const std::string& directory) {
  std::ifstream quota_file(directory + "/cpu.cfs_quota_us");
  std::ifstream period_file(directory + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period)) return std::nullopt;
  return Ratio(quota, period);
}

}  // namespace

std::optional<double> CgroupCpuQuota(const CgroupFiles& files) {
  std::optional<double> tightest;
  for (const CgroupLevel& level : CgroupLevels(files, "cpu")) {
    std::optional<double> quota = level.v2 ? ReadV2(level.directory) : ReadV1(level.directory);
    if (quota) tightest = std::min(tightest.value_or(*quota), *quota);
  }
  return tightest;
}

int UsableCpuCount() {
  int count = std::max(1, AffinityCount());
  if (std::optional<double> quota = CgroupCpuQuota({})) {
    count = std::clamp(static_cast<int>(std::min(*quota, 1e6)), 1, count);
  }
  return count;
}

}  // namespace pagoda
