// The folder of --data-dir: a lock, the shard's kept name, and one subfolder for each version of
// the records' format. Only `v1` is read. What another version left is moved aside and deleted in
// the background; nothing else in the folder is touched.
//
// Concurrency: one thread.
#ifndef PAGODA_SERVICES_KVSTORE_DATA_DIR_H_
#define PAGODA_SERVICES_KVSTORE_DATA_DIR_H_

#include <memory>
#include <set>
#include <string>
#include <thread>

#include "common/base/status.h"

namespace pagoda::kvstore {

class DataDir {
 public:
  // Errors, naming the folder: INVALID_ARGUMENT (it cannot be made or written to),
  // FAILED_PRECONDITION (another store uses it).
  static StatusOr<std::unique_ptr<DataDir>> Open(const std::string& path);
  ~DataDir();  // waits for the deletion and lets go of the lock
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;

  std::string version_folder() const { return path_ + "/v1"; }
  // 32 hex digits: random at first, then kept.
  const std::string& shard_id() const { return shard_id_; }
  // Folders of other versions that were found.
  int discarded() const { return discarded_; }

  // The version's folder turned out to be unreadable: what is in it goes.
  void DiscardVersion() { Discard("v1"); }

 private:
  DataDir(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  // The version folders that are somebody else's: those of before the first store.
  StatusOr<std::set<std::string>> ForeignFolders() const;
  void DiscardUnknownVersions(const std::set<std::string>& foreign);
  void ReadShardId();
  void Discard(const std::string& name);

  const std::string path_;
  const int lock_;
  std::string shard_id_;
  int discarded_ = 0;
  std::thread deleting_;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_DATA_DIR_H_
