#include "common/model/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace pagoda::model {
namespace {

Status FileError(const std::string& what) { return absl::ErrnoToStatus(errno, what); }

StatusOr<FileStamp> StampOf(int descriptor) {
  struct stat info;
  if (fstat(descriptor, &info) != 0) return FileError("cannot stat the model file");
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError("not a regular file");
  constexpr int64_t kNanos = 1'000'000'000;
  return FileStamp{.device = info.st_dev,
                   .inode = info.st_ino,
                   .size = static_cast<uint64_t>(info.st_size),
                   .mtime_ns = info.st_mtim.tv_sec * kNanos + info.st_mtim.tv_nsec,
                   .ctime_ns = info.st_ctim.tv_sec * kNanos + info.st_ctim.tv_nsec};
}

}  // namespace

StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  MappedFile file;
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  file.descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor_ < 0) return FileError("cannot open " + path);
  StatusOr<FileStamp> stamp = StampOf(file.descriptor_);
  if (!stamp.ok()) return Annotate(stamp.status(), path);
  file.stamp_ = *stamp;
  if (stamp->size > 0) {
    void* base = mmap(nullptr, stamp->size, PROT_READ, MAP_PRIVATE, file.descriptor_, 0);
    if (base == MAP_FAILED) return FileError("cannot map " + path);
    file.bytes_ = {static_cast<const char*>(base), stamp->size};
  }
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(std::exchange(other.bytes_, {})),
      stamp_(other.stamp_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  std::swap(stamp_, other.stamp_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  if (descriptor_ >= 0) close(descriptor_);
}

StatusOr<FileStamp> MappedFile::CurrentStamp() const { return StampOf(descriptor_); }

}  // namespace pagoda::model
