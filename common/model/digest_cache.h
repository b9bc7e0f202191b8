// Remembers content digests of files between runs, so that a large model is not hashed at each
// start.
//
// A hint, never required: a missing, read-only or damaged folder only costs time. An entry counts
// when device, inode, size, mtime_ns and ctime_ns are all those of the open file. A file that
// changed less than two seconds ago is not remembered: within the clock tick of its last change
// another one would leave all five as they are.
//
// Concurrency: any thread and any process; entries are written aside and renamed.
#ifndef PAGODA_COMMON_MODEL_DIGEST_CACHE_H_
#define PAGODA_COMMON_MODEL_DIGEST_CACHE_H_

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/sha256.h"
#include "common/base/status.h"
#include "common/model/mapped_file.h"

namespace pagoda::model {

class DigestCache {
 public:
  // An empty folder name switches it off.
  explicit DigestCache(std::string folder, const Clock* clock = SystemClock::Get())
      : folder_(std::move(folder)), clock_(clock) {}

  // `${PAGODA_CACHE:-~/.cache/pagoda}/digests`, or "" when neither variable is set.
  static std::string DefaultFolder();

  std::optional<Digest256> Find(const FileStamp& stamp) const;
  void Remember(const FileStamp& stamp, const Digest256& digest) const;

  // The file's content digest, from the cache or computed with `threads` and remembered.
  // Errors: ABORTED when the file changed while it was read.
  StatusOr<Digest256> ContentDigestOf(const MappedFile& file, int threads) const;

 private:
  std::string EntryPath(const FileStamp& stamp) const;

  std::string folder_;
  const Clock* clock_;
};

}  // namespace pagoda::model

#endif  // PAGODA_COMMON_MODEL_DIGEST_CACHE_H_
