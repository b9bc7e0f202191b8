// The identity of a model's weights: SHA-256 over the files' contents and the canonical config.
//
//   content digest = SHA256 over the SHA256s of the file's 64 MiB chunks
//   weights        = SHA256("pagoda.weights.v1" | u32 files | per file in byte order of its name:
//                           u32 length, name, content digest | u32 length, config)
//
// Concurrency: plain functions; ContentDigest starts threads of its own and joins them.
#ifndef PAGODA_COMMON_MODEL_WEIGHTS_DIGEST_H_
#define PAGODA_COMMON_MODEL_WEIGHTS_DIGEST_H_

#include <string>
#include <string_view>
#include <vector>

#include "common/base/sha256.h"

namespace pagoda::model {

// `threads` at least 1; the digest does not depend on it.
Digest256 ContentDigest(std::string_view bytes, int threads);

struct ModelFileDigest {
  std::string name;  // relative to the model's folder; "" for a model of a single file
  Digest256 content;
};

// `config` is CanonicalConfig()'s text. The order of `files` does not matter.
Digest256 WeightsDigest(std::vector<ModelFileDigest> files, std::string_view config);

}  // namespace pagoda::model

#endif  // PAGODA_COMMON_MODEL_WEIGHTS_DIGEST_H_
