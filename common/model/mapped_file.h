// A whole file mapped read-only into memory.
//
// It does not protect against a file that is cut short while it is mapped (the kernel then raises
// SIGBUS): model files are replaced by rename, never rewritten in place.
//
// Concurrency: immutable after Open.
#ifndef PAGODA_COMMON_MODEL_MAPPED_FILE_H_
#define PAGODA_COMMON_MODEL_MAPPED_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace pagoda::model {

// What tells two contents of one path apart without reading them.
struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

class MappedFile {
 public:
  // Errors: NOT_FOUND, PERMISSION_DENIED or INTERNAL with the path; INVALID_ARGUMENT for what is
  // not a regular file.
  static StatusOr<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::string_view bytes() const { return bytes_; }
  // As it was when the file was opened.
  const FileStamp& stamp() const { return stamp_; }
  // As it is now, of the opened file (not of whatever has taken its path).
  StatusOr<FileStamp> CurrentStamp() const;

 private:
  MappedFile() = default;

  int descriptor_ = -1;
  std::string_view bytes_;
  FileStamp stamp_;
};

}  // namespace pagoda::model

#endif  // PAGODA_COMMON_MODEL_MAPPED_FILE_H_
