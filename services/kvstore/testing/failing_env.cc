// Compiled without RTTI, as Debian's RocksDB is: its classes have no type information to derive
// from.
#include "services/kvstore/testing/failing_env.h"

#include <string>
#include <utility>

#include "rocksdb/file_system.h"

namespace pagoda::testing {
namespace {

using rocksdb::IOStatus;

class FailingFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FailingFile(std::unique_ptr<rocksdb::FSWritableFile> file, const std::atomic<bool>& failing)
      : FSWritableFileOwnerWrapper(std::move(file)), failing_(failing) {}
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  rocksdb::IODebugContext* context) override {
    if (failing_) return IOStatus::NoSpace("full, says the test");
    return FSWritableFileOwnerWrapper::Append(data, options, context);
  }
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  const rocksdb::DataVerificationInfo& info,
                  rocksdb::IODebugContext* context) override {
    if (failing_) return IOStatus::NoSpace("full, says the test");
    return FSWritableFileOwnerWrapper::Append(data, options, info, context);
  }

 private:
  const std::atomic<bool>& failing_;
};

class FailingFiles final : public rocksdb::FileSystemWrapper {
 public:
  explicit FailingFiles(const std::atomic<bool>& failing)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), failing_(failing) {}
  const char* Name() const override { return "FailingFiles"; }
  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           rocksdb::IODebugContext* context) override {
    IOStatus status = FileSystemWrapper::NewWritableFile(name, options, file, context);
    if (status.ok()) *file = std::make_unique<FailingFile>(std::move(*file), failing_);
    return status;
  }

 private:
  const std::atomic<bool>& failing_;
};

}  // namespace

std::unique_ptr<rocksdb::Env> MakeFailingEnv(const std::atomic<bool>& failing) {
  return rocksdb::NewCompositeEnv(std::make_shared<FailingFiles>(failing));
}

}  // namespace pagoda::testing
