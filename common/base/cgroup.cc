#include "common/base/cgroup.h"

#include <fstream>
#include <sstream>

namespace pagoda {
namespace {

bool HasController(const std::string& list, std::string_view wanted) {
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

void AppendLevels(const std::string& mount, std::string path, bool v2,
                  std::vector<CgroupLevel>& levels) {
  while (true) {
    if (path == "/") path.clear();
    levels.push_back({mount + path, v2});
    if (path.empty()) return;
    size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
}

}  // namespace

std::vector<CgroupLevel> CgroupLevels(const CgroupFiles& files, std::string_view controller) {
  std::vector<CgroupLevel> levels;
  std::ifstream membership(files.membership);
  for (std::string line; std::getline(membership, line);) {  // "id:controllers:path"
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      AppendLevels(files.root, path, true, levels);
    } else if (HasController(controllers, controller)) {
      AppendLevels(files.root + "/" + controllers, path, false, levels);
      if (controllers != controller) {
        AppendLevels(files.root + "/" + std::string(controller), path, false, levels);
      }
    }
  }
  return levels;
}

}  // namespace pagoda
