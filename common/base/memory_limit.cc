#include "common/base/memory_limit.h"

#include <algorithm>
#include <fstream>

namespace pagoda {
namespace {

// cgroup v1 writes "no limit" as the largest page-aligned int64.
constexpr uint64_t kNoLimitFrom = uint64_t{1} << 62;

}  // namespace

std::optional<uint64_t> CgroupMemoryLimit(const CgroupFiles& files) {
  std::optional<uint64_t> tightest;
  for (const CgroupLevel& level : CgroupLevels(files, "memory")) {
    std::ifstream file(level.directory + (level.v2 ? "/memory.max" : "/memory.limit_in_bytes"));
    uint64_t bytes = 0;
    if (!(file >> bytes) || bytes >= kNoLimitFrom) continue;  // missing, or "max"
    tightest = std::min(tightest.value_or(bytes), bytes);
  }
  return tightest;
}

std::optional<uint64_t> AvailableMemory(const std::string& meminfo) {
  std::ifstream file(meminfo);
  std::string name, unit;
  for (uint64_t kib = 0; file >> name >> kib; std::getline(file, unit)) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

uint64_t UsableMemoryBytes() {
  uint64_t bytes = AvailableMemory().value_or(UINT64_MAX);
  bytes = std::min(bytes, CgroupMemoryLimit(CgroupFiles{}).value_or(UINT64_MAX));
  return std::max<uint64_t>(bytes, 1);
}

}  // namespace pagoda
