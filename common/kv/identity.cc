#include "common/kv/identity.h"

#include "common/base/bytes.h"
#include "common/kv/encoding.h"

namespace pagoda {

Space MakeSpace(const SpaceFields& fields) {
  std::string text = "pagoda.space.v1";
  AppendLp(text, fields.weights.view());
  AppendLp(text, fields.adapter ? AsBytes(*fields.adapter) : std::string_view());
  AppendLp(text, fields.kv_format);
  AppendLe(text, fields.block_tokens);
  AppendLp(text, AsBytes(fields.layout));
  AppendLp(text, fields.rope);
  AppendLp(text, fields.numerics);
  return Space{Sha256::Of(text)};
}

std::string Fingerprint(const Space& space) { return space.ToHex().substr(0, 12); }

Namespace MakeNamespace(std::string_view cluster_secret, const Space& space,
                        std::string_view tenant, uint32_t tenant_generation,
                        uint64_t weight_epoch) {
  std::string text = "pagoda.ns.v1";
  text += space.view();
  AppendLp(text, tenant);
  AppendLe(text, tenant_generation);
  AppendLe(text, weight_epoch);
  return Namespace{HmacSha256(cluster_secret, text)};
}

Namespace MakeSharedNamespace(std::string_view cluster_secret, const Space& space,
                              uint64_t weight_epoch) {
  return MakeNamespace(cluster_secret, space, "", 0, weight_epoch);
}

}  // namespace pagoda
