// A model's weights in the kernels' packed layout, in private memory.
//
// 4-bit and 8-bit matrices stay quantised, F32 stays F32. It knows shapes, not the computation.
//
// Concurrency: immutable after Load; any thread may read.
#ifndef PAGODA_SERVICES_WORKER_MODEL_WEIGHTS_H_
#define PAGODA_SERVICES_WORKER_MODEL_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/model/gguf.h"
#include "common/model/model_config.h"
#include "kernels/weights/packed_matrix.h"
#include "services/worker/aligned_buffer.h"
#include "services/worker/thread_team.h"

namespace pagoda::worker {

struct LayerWeights {
  const float* attn_norm = nullptr;  // [hidden]
  kernels::PackedMatrix q;           // [num_heads * head_dim][hidden]
  kernels::PackedMatrix k;           // [num_kv_heads * head_dim][hidden]
  kernels::PackedMatrix v;           // [num_kv_heads * head_dim][hidden]
  kernels::PackedMatrix o;           // [hidden][num_heads * head_dim]
  const float* ffn_norm = nullptr;   // [hidden]
  kernels::PackedMatrix gate;        // [ffn][hidden]
  kernels::PackedMatrix up;          // [ffn][hidden]
  kernels::PackedMatrix down;        // [hidden][ffn]
};

class ModelWeights {
 public:
  // Packs with all threads of `team`. `config` is ReadModelConfig(gguf)'s; the file is not needed
  // afterwards. Errors name the tensor: a type or shape without kernels, or memory that is not
  // there.
  static StatusOr<ModelWeights> Load(const model::GgufFile& gguf, const model::ModelConfig& config,
                                     ThreadTeam& team);

  const kernels::PackedMatrix& embedding() const { return embedding_; }  // [vocabulary][hidden]
  const kernels::PackedMatrix& head() const { return head_; }            // the embedding when tied
  const float* output_norm() const { return output_norm_; }              // [hidden]
  const std::vector<LayerWeights>& layers() const { return layers_; }
  int64_t bytes() const { return memory_.bytes(); }

 private:
  AlignedBuffer memory_;
  kernels::PackedMatrix embedding_;
  kernels::PackedMatrix head_;
  const float* output_norm_ = nullptr;
  std::vector<LayerWeights> layers_;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_MODEL_WEIGHTS_H_
