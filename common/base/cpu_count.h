// How many CPUs this process may really use: the affinity mask and the cgroup's quota, not the
// machine's size.
//
// It does not see CPU shares (weights) or what other processes use.
//
// Concurrency: plain functions, no state.
#ifndef PAGODA_COMMON_BASE_CPU_COUNT_H_
#define PAGODA_COMMON_BASE_CPU_COUNT_H_

#include <optional>

#include "common/base/cgroup.h"

namespace pagoda {

// At least 1. A quota of 2.5 CPUs counts as 2: a third thread would stop all of them each time the
// quota is used up.
int UsableCpuCount();

// CPUs that the tightest quota on the way from this process's cgroup up to the root allows, of
// cgroup v1 (cpu.cfs_quota_us) and v2 (cpu.max); nothing when there is none. Levels that cannot be
// read count as unlimited: in a container the upper ones are not visible.
std::optional<double> CgroupCpuQuota(const CgroupFiles& files);

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_CPU_COUNT_H_
