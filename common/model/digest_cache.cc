#include "common/model/digest_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/bytes.h"
#include "common/base/random.h"
#include "common/model/weights_digest.h"

namespace pagoda::model {
namespace {

constexpr std::chrono::seconds kSettled{2};

// The whole entry: a stamp that differs in any field differs in the text.
std::string EntryText(const FileStamp& stamp, const std::string& digest_hex) {
  return "pagoda.digest.v1 " + std::to_string(stamp.device) + " " + std::to_string(stamp.inode) +
         " " + std::to_string(stamp.size) + " " + std::to_string(stamp.mtime_ns) + " " +
         std::to_string(stamp.ctime_ns) + " " + digest_hex + "\n";
}

}  // namespace

std::string DigestCache::DefaultFolder() {
  if (const char* cache = std::getenv("PAGODA_CACHE"); cache != nullptr && *cache != '\0') {
    return std::string(cache) + "/digests";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return std::string(home) + "/.cache/pagoda/digests";
  }
  return "";
}

std::string DigestCache::EntryPath(const FileStamp& stamp) const {
  return folder_ + "/" + std::to_string(stamp.device) + "-" + std::to_string(stamp.inode);
}

std::optional<Digest256> DigestCache::Find(const FileStamp& stamp) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream in(EntryPath(stamp), std::ios::binary);
  constexpr size_t kMaxEntryBytes = 512;
  std::string text(kMaxEntryBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));

  constexpr size_t kHexDigits = 64;
  if (text.size() < kHexDigits + 1) return std::nullopt;
  const std::string hex = text.substr(text.size() - kHexDigits - 1, kHexDigits);
  StatusOr<std::string> raw = FromHex(hex);
  if (!raw.ok() || text != EntryText(stamp, hex)) return std::nullopt;
  Digest256 digest;
  std::copy(raw->begin(), raw->end(), digest.begin());
  return digest;
}

void DigestCache::Remember(const FileStamp& stamp, const Digest256& digest) const {
  if (folder_.empty()) return;
  const std::chrono::nanoseconds changed(std::max(stamp.mtime_ns, stamp.ctime_ns));
  if (clock_->WallTime() - changed < kSettled) return;
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  const std::string aside = folder_ + "/.new-" + RandomHex128();
  {
    std::ofstream out(aside, std::ios::binary);
    out << EntryText(stamp, ToHex(AsBytes(digest)));
    out.close();
    if (!out) {
      std::filesystem::remove(aside, ignored);
      return;
    }
  }
  std::filesystem::rename(aside, EntryPath(stamp), ignored);
  if (ignored) std::filesystem::remove(aside, ignored);
}

StatusOr<Digest256> DigestCache::ContentDigestOf(const MappedFile& file, int threads) const {
  if (std::optional<Digest256> known = Find(file.stamp())) return *known;
  const Digest256 digest = ContentDigest(file.bytes(), threads);
  PAGODA_ASSIGN_OR_RETURN(FileStamp now, file.CurrentStamp());
  if (now != file.stamp()) {
    return absl::AbortedError("the model file changed while it was read");
  }
  Remember(file.stamp(), digest);
  return digest;
}

}  // namespace pagoda::model
