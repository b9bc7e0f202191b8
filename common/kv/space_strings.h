// The canonical texts inside a space: KV format, layout, rope. One struct for each; its text lists
// every field by name in a fixed order, so that equal structs and only they give equal texts. The
// README shows them. The numerics string ("cpu-f32-r1") is made by the backend.
//
// Concurrency: plain values.
#ifndef PAGODA_COMMON_KV_SPACE_STRINGS_H_
#define PAGODA_COMMON_KV_SPACE_STRINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/sha256.h"

namespace pagoda {

// What one number of the cache is and how it came to be.
struct KvFormat {
  std::string k_dtype;  // "f32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "int8", "int4"
  std::string v_dtype;
  std::optional<Digest256> scales{};  // of a checkpoint's own KV scales
  uint32_t k_group = 0;               // values that share a scale; 0: none
  uint32_t v_group = 0;
  std::string transforms{};  // what is applied before quantisation, in order; "": nothing
  std::vector<uint32_t> skip_layers{};  // layers that stay in the model's dtype, ascending

  std::string ToString() const;
};

// Where each number of a block lies.
struct LayoutFormat {
  std::string order;         // of the regions: "group,layer,k,kscale,v,vscale"
  std::string k_tile;        // of one kv head's K in a block: "head_dim,token"
  std::string v_tile;        // "token,head_dim"
  uint32_t align_bytes = 0;  // where a region may begin
  uint32_t head_groups = 1;
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;

  std::string ToString() const;
  Digest256 Digest() const { return Sha256::Of(ToString()); }
};

// How positions enter K.
struct RopeFormat {
  std::string type;     // "none", "linear", "llama3", "yarn", "longrope"
  std::string pairing;  // "half": (i, i + dim/2), "adjacent": (2i, 2i + 1)
  uint32_t dim = 0;     // rotated dimensions of a head
  float theta = 0;
  // The scaling's numbers by name in the order the type defines; each as fp32.
  std::vector<std::pair<std::string, float>> scaling{};

  std::string ToString() const;
};

}  // namespace pagoda

#endif  // PAGODA_COMMON_KV_SPACE_STRINGS_H_
