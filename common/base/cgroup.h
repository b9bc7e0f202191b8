// Where the limits of this process's control groups can be read, of cgroup v1 and v2.
//
// Concurrency: plain functions, no state.
#ifndef PAGODA_COMMON_BASE_CGROUP_H_
#define PAGODA_COMMON_BASE_CGROUP_H_

#include <string>
#include <string_view>
#include <vector>

namespace pagoda {

// Where the kernel shows cgroups; tests write their own files.
struct CgroupFiles {
  std::string membership = "/proc/self/cgroup";
  std::string root = "/sys/fs/cgroup";
};

struct CgroupLevel {
  std::string directory;
  bool v2 = false;
};

// The directories whose files may limit this process, from its own group up to the root, in every
// hierarchy that knows `controller` ("cpu", "memory"). In a container the upper ones are usually not
// visible: a directory need not exist. The tightest limit of all levels holds.
std::vector<CgroupLevel> CgroupLevels(const CgroupFiles& files, std::string_view controller);

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_CGROUP_H_
