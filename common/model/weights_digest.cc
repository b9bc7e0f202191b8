#include "common/model/weights_digest.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "common/base/bytes.h"

namespace pagoda::model {
namespace {

constexpr size_t kChunkBytes = size_t{64} << 20;  // part of the identity: never changed

void AppendLengthPrefixed(std::string& out, std::string_view text) {
  AppendLe<uint32_t>(out, static_cast<uint32_t>(text.size()));
  out += text;
}

}  // namespace

Digest256 ContentDigest(std::string_view bytes, int threads) {
  const size_t chunks = (bytes.size() + kChunkBytes - 1) / kChunkBytes;
  std::vector<Digest256> digests(chunks);
  std::atomic<size_t> next{0};
  auto work = [&] {
    Sha256 hash;
    for (size_t i = next.fetch_add(1); i < chunks; i = next.fetch_add(1)) {
      hash.Update(bytes.substr(i * kChunkBytes, kChunkBytes));
      digests[i] = hash.Finish();
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min<size_t>(std::max(threads, 1), chunks); ++i) {
    others.emplace_back(work);
  }
  work();
  for (std::thread& other : others) other.join();

  Sha256 hash;
  for (const Digest256& digest : digests) hash.Update(AsBytes(digest));
  return hash.Finish();
}

Digest256 WeightsDigest(std::vector<ModelFileDigest> files, std::string_view config) {
  std::sort(files.begin(), files.end(),
            [](const ModelFileDigest& a, const ModelFileDigest& b) { return a.name < b.name; });
  std::string message = "pagoda.weights.v1";
  AppendLe<uint32_t>(message, static_cast<uint32_t>(files.size()));
  for (const ModelFileDigest& file : files) {
    AppendLengthPrefixed(message, file.name);
    message += AsBytes(file.content);
  }
  AppendLengthPrefixed(message, config);
  return Sha256::Of(message);
}

}  // namespace pagoda::model
