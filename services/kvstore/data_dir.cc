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

// Locked while a store uses the folder. Its lines name the version folders that were there before
// any store, which are somebody else's; the last one says that the list is whole.
constexpr char kLockFile[] = "pagoda-kvstore.lock";
constexpr char kListEnd[] = ".";
constexpr char kShardFile[] = "shard_id";
constexpr char kDiscardedPrefix[] = "discarded-";
constexpr size_t kShardIdDigits = 32;

bool IsVersion(const std::string& name) {
  return name.size() > 1 && name[0] == 'v' &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::set<std::string> VersionFolders(const std::string& path) {
  std::set<std::string> folders;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (IsVersion(entry.path().filename())) folders.insert(entry.path().filename());
  }
  return folders;
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
  int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
  if (lock < 0) return Unusable(path, std::strerror(errno));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return absl::FailedPreconditionError("\"" + path + "\" is used by another store");
  }
  std::unique_ptr<DataDir> folder(new DataDir(path, lock));
  StatusOr<std::set<std::string>> foreign = folder->ForeignFolders();
  if (!foreign.ok()) return Unusable(path, std::string(foreign.status().message()));
  folder->DiscardUnknownVersions(*foreign);
  folder->ReadShardId();
  return folder;
}

DataDir::~DataDir() {
  if (deleting_.joinable()) deleting_.join();
  close(lock_);
}

StatusOr<std::set<std::string>> DataDir::ForeignFolders() const {
  const std::string lock_path = path_ + "/" + kLockFile;
  std::set<std::string> foreign;
  std::ifstream list(lock_path);
  for (std::string name; std::getline(list, name);) {
    if (name == kListEnd) return foreign;
    foreign.insert(name);
  }
  foreign = VersionFolders(path_);  // no store has been here, or it did not get this far
  std::ofstream fresh(lock_path, std::ios::trunc);
  for (const std::string& name : foreign) fresh << name << '\n';
  fresh << kListEnd << '\n' << std::flush;
  if (!fresh) return absl::DataLossError(std::string(kLockFile) + " cannot be written");
  return foreign;
}

void DataDir::DiscardUnknownVersions(const std::set<std::string>& foreign) {
  for (const std::string& name : VersionFolders(path_)) {
    if (name != "v1" && !foreign.contains(name)) Discard(name);
  }
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    // Left by a kill, or it is being deleted already.
    if (entry.path().filename().string().starts_with(kDiscardedPrefix)) return Discard("");
  }
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
