#include "common/kv/weights.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "common/base/bytes.h"
#include "common/kv/encoding.h"

namespace pagoda {
namespace {

constexpr size_t kChunkBytes = size_t{64} << 20;

}  // namespace

Digest256 ContentDigest(std::string_view file, int threads) {
  size_t chunks = (file.size() + kChunkBytes - 1) / kChunkBytes;
  std::vector<Digest256> digests(chunks);
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < chunks; i = next++) {
      digests[i] = Sha256::Of(file.substr(i * kChunkBytes, kChunkBytes));
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

void ConfigText::Add(std::string_view field, int64_t value) {
  AddText(field, std::to_string(value));
}

void ConfigText::AddFloat(std::string_view field, float value) { AddText(field, FloatHex(value)); }

void ConfigText::AddText(std::string_view field, std::string_view value) {
  if (!field.empty() && lines_.emplace(Plain(field), Plain(value)).second) return;
  std::fprintf(stderr, "fatal: model setting \"%.*s\" is given twice or has no name\n",
               static_cast<int>(std::min<size_t>(field.size(), 200)), field.data());
  std::abort();
}

std::string ConfigText::ToString() const {
  std::string text;
  for (const auto& [field, value] : lines_) text += field + "=" + value + "\n";
  return text;
}

StatusOr<WeightsDigest> MakeWeights(std::vector<WeightsFile> files, std::string_view config) {
  if (files.empty()) return absl::InvalidArgumentError("weights: at least one file is needed");
  std::sort(files.begin(), files.end(),
            [](const WeightsFile& a, const WeightsFile& b) { return a.name < b.name; });
  std::string text = "pagoda.weights.v1";
  AppendLe(text, static_cast<uint32_t>(files.size()));
  for (size_t i = 0; i < files.size(); ++i) {
    if (i > 0 && files[i].name == files[i - 1].name) {
      return absl::InvalidArgumentError("weights: file \"" + files[i].name + "\" is named twice");
    }
    AppendLp(text, files[i].name);
    text += AsBytes(files[i].content);
  }
  AppendLp(text, config);
  return WeightsDigest{Sha256::Of(text)};
}

}  // namespace pagoda
