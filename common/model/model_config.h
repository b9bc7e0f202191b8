// What the forward pass needs to know about a model, read from GGUF and checked at load.
//
// Everything that changes the computation and is not built here is refused by its name: other
// architectures, rope scalings, tensor types, tensors that nobody would read. It holds no weights.
//
// Concurrency: plain values and functions.
#ifndef PAGODA_COMMON_MODEL_MODEL_CONFIG_H_
#define PAGODA_COMMON_MODEL_MODEL_CONFIG_H_

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/model/gguf.h"

namespace pagoda::model {

// Which elements of a head the rotary embedding turns together.
enum class RopeOrder {
  kAdjacentPairs,  // (0, 1), (2, 3), ...: llama in GGUF, whose q and k rows are permuted for it
  kHalves,         // (0, d/2), (1, d/2 + 1), ...
};

struct ModelConfig {
  std::string architecture;  // "llama"
  int32_t num_layers = 0;
  int32_t hidden = 0;        // width of the residual stream
  int32_t ffn = 0;           // width between gate/up and down
  int32_t num_heads = 0;     // of queries
  int32_t num_kv_heads = 0;  // divides num_heads
  int32_t head_dim = 0;
  int32_t vocabulary = 0;
  int32_t context_length = 0;  // tokens the model was made for; bounds requests, not computation
  float rope_base = 0.0f;
  int32_t rope_dim = 0;  // leading elements of a head that are turned; equals head_dim
  RopeOrder rope_order = RopeOrder::kAdjacentPairs;
  float rms_eps = 0.0f;
  float attention_scale = 0.0f;  // 1 / sqrt(head_dim), rounded to fp32
  bool tied_head = false;        // the token embedding is the output head

  int32_t q_width() const { return num_heads * head_dim; }
  int32_t kv_width() const { return num_kv_heads * head_dim; }
};

// Errors: INVALID_ARGUMENT or NOT_FOUND naming the key, the value and the limit; UNIMPLEMENTED
// naming what this build does not compute.
StatusOr<ModelConfig> ReadModelConfig(const GgufFile& gguf);

// The canonical form that enters a model's identity: every field that the forward pass reads, as
// lines `field=value\n` sorted by field; integers in decimal, floats as the 8 hex digits of their
// fp32 bits. context_length is not among them.
std::string CanonicalConfig(const ModelConfig& config);

}  // namespace pagoda::model

#endif  // PAGODA_COMMON_MODEL_MODEL_CONFIG_H_
