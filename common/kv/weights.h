// The digest of a model's weights: of the files' contents and of every setting that the forward
// pass reads. Two workers whose weights digests are equal compute with the same numbers.
//
// Concurrency: plain functions; ConfigText belongs to one thread.
#ifndef PAGODA_COMMON_KV_WEIGHTS_H_
#define PAGODA_COMMON_KV_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/kv/block_key.h"

namespace pagoda {

// SHA-256 over the SHA-256s of the 64 MiB chunks of `file`, so that chunks are hashed in parallel.
// An empty file has no chunk. `threads` is at least 1 and changes nothing but the time.
Digest256 ContentDigest(std::string_view file, int threads = 1);

struct WeightsFile {
  std::string name;  // relative to the model's folder, '/' between parts; "" for a single file
  Digest256 content{};
};

// Collects the fields that the forward pass reads, overrides included, each once, as lines
// "field=value\n" sorted by field.
class ConfigText {
 public:
  // REQUIRES: `field` is new and not empty; neither it nor a text holds '=', ';' or a line break. A
  // broken requirement ends the process: an ambiguous identity must not be made.
  void Add(std::string_view field, int64_t value);     // decimal
  void AddFloat(std::string_view field, float value);  // its fp32 bits in 8 hex digits
  void AddText(std::string_view field, std::string_view value);

  std::string ToString() const;

 private:
  std::map<std::string, std::string, std::less<>> lines_;
};

// `files` in any order (they are hashed in byte order of their names). Error: INVALID_ARGUMENT when
// there is none, or a name occurs twice.
StatusOr<WeightsDigest> MakeWeights(std::vector<WeightsFile> files, std::string_view config);

}  // namespace pagoda

#endif  // PAGODA_COMMON_KV_WEIGHTS_H_
