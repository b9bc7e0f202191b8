#include "common/base/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

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

template <typename Read>
std::optional<double> TightestUpTo(const std::string& mount, std::string path, Read read) {
  std::optional<double> tightest;
  while (true) {
    if (path == "/") path.clear();
    if (std::optional<double> quota = read(mount + path)) {
      tightest = std::min(tightest.value_or(*quota), *quota);
    }
    if (path.empty()) return tightest;
    size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
}

bool HasController(const std::string& list, std::string_view wanted) {
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

}  // namespace

std::optional<double> CgroupCpuQuota(const CgroupFiles& files) {
  std::optional<double> tightest;
  auto consider = [&](std::optional<double> quota) {
    if (quota) tightest = std::min(tightest.value_or(*quota), *quota);
  };
  std::ifstream membership(files.membership);
  for (std::string line; std::getline(membership, line);) {  // "id:controllers:path"
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      consider(TightestUpTo(files.root, path, ReadV2));
    } else if (HasController(controllers, "cpu")) {
      consider(TightestUpTo(files.root + "/" + controllers, path, ReadV1));
      if (controllers != "cpu") consider(TightestUpTo(files.root + "/cpu", path, ReadV1));
    }
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
