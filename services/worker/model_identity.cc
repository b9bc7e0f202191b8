#include "services/worker/model_identity.h"

#include <string>

#include "common/kv/space_strings.h"
#include "common/model/digest_cache.h"
#include "common/model/weights_digest.h"

namespace pagoda::worker {

StatusOr<Digest256> WeightsDigestOf(const model::GgufFile& gguf, const model::ModelConfig& config,
                                    int threads) {
  model::DigestCache cache(model::DigestCache::DefaultFolder());
  PAGODA_ASSIGN_OR_RETURN(Digest256 content, cache.ContentDigestOf(*gguf.file(), threads));
  return model::WeightsDigest({{.name = "", .content = content}}, model::CanonicalConfig(config));
}

SpaceFields MakeSpaceFields(const model::ModelConfig& config, const Digest256& weights,
                            const kernels::KvSpec& kv, std::string_view numerics) {
  KvFormat format{.k_dtype = kernels::KvDtypeName(kv.k_dtype),
                  .v_dtype = kernels::KvDtypeName(kv.v_dtype)};
  // As kernels/kv/kv_layout.h lays a block out.
  LayoutFormat layout{.order = "group,layer,k,kscale,v,vscale",
                      .k_tile = "head_dim,token",
                      .v_tile = "token,head_dim",
                      .align_bytes = static_cast<uint32_t>(kernels::kKvAlign),
                      .head_groups = 1,
                      .layers = static_cast<uint32_t>(kv.num_layers),
                      .kv_heads = static_cast<uint32_t>(kv.num_kv_heads),
                      .head_dim = static_cast<uint32_t>(kv.head_dim)};
  RopeFormat rope{
      .type = "none",
      .pairing = config.rope_order == model::RopeOrder::kAdjacentPairs ? "adjacent" : "half",
      .dim = static_cast<uint32_t>(config.rope_dim),
      .theta = config.rope_base};
  SpaceFields fields;
  fields.weights.bytes = weights;
  fields.kv_format = format.ToString();
  fields.block_tokens = static_cast<uint32_t>(kv.block_tokens);
  fields.layout = layout.Digest();
  fields.rope = rope.ToString();
  fields.numerics = std::string(numerics);
  return fields;
}

v1::SpaceFields ToProto(const SpaceFields& fields) {
  v1::SpaceFields message;
  message.set_weights(std::string(fields.weights.view()));
  if (fields.adapter.has_value()) message.set_adapter(std::string(AsBytes(*fields.adapter)));
  message.set_kv_format(fields.kv_format);
  message.set_block_tokens(fields.block_tokens);
  message.set_layout(std::string(AsBytes(fields.layout)));
  message.set_rope(fields.rope);
  message.set_numerics(fields.numerics);
  return message;
}

}  // namespace pagoda::worker
