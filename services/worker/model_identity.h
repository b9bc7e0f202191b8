// What a worker's KV bytes are: the fields of its space, from the model, the layout and the
// backend.
//
// Concurrency: plain functions.
#ifndef PAGODA_SERVICES_WORKER_MODEL_IDENTITY_H_
#define PAGODA_SERVICES_WORKER_MODEL_IDENTITY_H_

#include <string_view>

#include "common/base/sha256.h"
#include "common/base/status.h"
#include "common/kv/identity.h"
#include "common/model/gguf.h"
#include "common/model/model_config.h"
#include "kernels/kv/kv_layout.h"
#include "pagoda/v1/control.pb.h"

namespace pagoda::worker {

// The digest of the open file and the configuration read from it. Hashes with `threads` unless the
// digest cache knows the file.
StatusOr<Digest256> WeightsDigestOf(const model::GgufFile& gguf, const model::ModelConfig& config,
                                    int threads);

SpaceFields MakeSpaceFields(const model::ModelConfig& config, const Digest256& weights,
                            const kernels::KvSpec& kv, std::string_view numerics);

v1::SpaceFields ToProto(const SpaceFields& fields);

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_MODEL_IDENTITY_H_
