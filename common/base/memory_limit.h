// How much memory this process may still take: what the machine has free and what its control groups
// allow, not the machine's size.
//
// Concurrency: plain functions, no state.
#ifndef PAGODA_COMMON_BASE_MEMORY_LIMIT_H_
#define PAGODA_COMMON_BASE_MEMORY_LIMIT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/cgroup.h"

namespace pagoda {

// The smaller of the cgroup limit and the memory that is available now, in bytes; at least 1.
uint64_t UsableMemoryBytes();

// The tightest cgroup limit (memory.max, memory.limit_in_bytes), or nothing when there is none.
std::optional<uint64_t> CgroupMemoryLimit(const CgroupFiles& files);

// MemAvailable of a /proc/meminfo, in bytes; nothing when it cannot be read.
std::optional<uint64_t> AvailableMemory(const std::string& meminfo = "/proc/meminfo");

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_MEMORY_LIMIT_H_
