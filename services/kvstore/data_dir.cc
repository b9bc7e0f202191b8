#include "services/kvstore/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/executor.h"
#include "common/base/logging.h"
#include "common/base/random.h"

namespace pagoda::kvstore {
namespace {

namespace fs = std::filesystem;

constexpr char kLockFile[] = "pagoda-kvstore.lock";
constexpr char kShardFile[] = "shard_id";
constexpr char kDiscardedPrefix[] = "discarded-";
constexpr size_t kShardIdDigits = 32;

bool IsVersion(const std::string& name) {
  return name.size() > 1 && name[0] == 'v' &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Status Unusable(const std::string& path, std::string_view why) {
  return absl::InvalidArgumentError("\"" + path + "\" cannot be used: " + std::string(why));
}

}  // namespace

StatusOr<std::unique_ptr<DataDir>> DataDir::Open(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return Unusable(path, error.message());
  std::string lock_path = path + "/" + kLockFile;
  bool was_ours = fs::exists(lock_path, error);
  int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
  if (lock < 0) return Unusable(path, std::strerror(errno));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return absl::FailedPreconditionError("\"" + path + "\" is used by another store");
  }
  std::unique_ptr<DataDir> folder(new DataDir(path, lock));
  folder->DiscardUnknownVersions(was_ours);
  folder->ReadShardId();
  return folder;
}

DataDir::~DataDir() {
  if (deleting_.joinable()) deleting_.join();
  close(lock_);
}

// A folder that was somebody else's keeps its v2, also at later starts: the lock file names it.
void DataDir::DiscardUnknownVersions(bool was_ours) {
  std::error_code error;
  const std::string lock_path = path_ + "/" + kLockFile;
  std::set<std::string> foreign;
  std::ifstream names(lock_path);
  for (std::string name; std::getline(names, name);) foreign.insert(name);
  std::vector<std::string> unknown;
  bool left_over = false;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    std::string name = entry.path().filename();
    if (IsVersion(name) && name != "v1" && !foreign.contains(name)) unknown.push_back(name);
    left_over |= name.starts_with(kDiscardedPrefix);
  }
  if (!was_ours) {
    std::ofstream keep(lock_path, std::ios::app);
    for (const std::string& name : unknown) keep << name << '\n';
    return;
  }
  for (const std::string& name : unknown) Discard(name);
  if (unknown.empty() && left_over) Discard("");
}

void DataDir::Discard(const std::string& name) {
  std::error_code error;
  if (!name.empty()) {
    ++discarded_;
    Log(LogLevel::kWarning, "a folder of blocks cannot be read and is deleted",
        {{"folder", path_ + "/" + name}});
    fs::rename(path_ + "/" + name, path_ + "/" + kDiscardedPrefix + RandomHex128(), error);
  }
  if (deleting_.joinable()) deleting_.join();
  deleting_ = std::thread([path = path_] {
    SetUpThread("disk-discard", 19);
    std::error_code error;
    std::vector<fs::path> discarded;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      if (entry.path().filename().string().starts_with(kDiscardedPrefix)) {
        discarded.push_back(entry.path());
      }
    }
    for (const fs::path& folder : discarded) fs::remove_all(folder, error);
  });
}

void DataDir::ReadShardId() {
  std::string file = path_ + "/" + kShardFile;
  std::getline(std::ifstream(file), shard_id_);
  if (shard_id_.size() == kShardIdDigits && FromHex(shard_id_).ok()) return;
  shard_id_ = RandomHex128();
  std::string fresh = file + ".new";
  std::ofstream(fresh) << shard_id_ << '\n';
  std::error_code error;
  fs::rename(fresh, file, error);
  if (error) Log(LogLevel::kWarning, "the shard's name cannot be kept", {{"file", file}});
}

}  // namespace pagoda::kvstore
