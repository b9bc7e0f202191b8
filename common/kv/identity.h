// What a block's bytes are (space) and who may find them (namespace). Every tier, event and the
// router make them by these functions, and keys by block_key_chain.h.
//
//   space     = SHA256("pagoda.space.v1" | lp(weights) | lp(adapter) | lp(KV format)
//                      | u32 block_tokens | lp(layout digest) | lp(rope) | lp(numerics))
//   namespace = HMAC-SHA256(cluster secret, "pagoda.ns.v1" | space | lp(tenant) | u32 generation
//                           | u64 weight epoch)
// Integers are little-endian; an absent digest has length 0.
//
// Concurrency: plain functions and values.
#ifndef PAGODA_COMMON_KV_IDENTITY_H_
#define PAGODA_COMMON_KV_IDENTITY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/kv/block_key.h"

namespace pagoda {

// Peers exchange the fields and compare the digest that each makes of them.
struct SpaceFields {
  WeightsDigest weights{};
  std::optional<Digest256> adapter{};  // content digest; absent without an adapter
  std::string kv_format{};             // KvFormat::ToString
  uint32_t block_tokens = 0;
  Digest256 layout{};  // LayoutFormat::Digest
  std::string rope{};  // RopeFormat::ToString
  std::string numerics{};

  friend bool operator==(const SpaceFields&, const SpaceFields&) = default;
};

Space MakeSpace(const SpaceFields& fields);

// The first 12 hex digits of the space: the OpenAI `system_fingerprint`.
std::string Fingerprint(const Space& space);

// Raising `tenant_generation` makes a tenant's blocks unreachable everywhere at once; raising
// `weight_epoch` retires a model revision. `cluster_secret` may be empty.
Namespace MakeNamespace(std::string_view cluster_secret, const Space& space,
                        std::string_view tenant, uint32_t tenant_generation, uint64_t weight_epoch);

// The namespace that all tenants share: tenant "" in generation 0.
Namespace MakeSharedNamespace(std::string_view cluster_secret, const Space& space,
                              uint64_t weight_epoch);

}  // namespace pagoda

#endif  // PAGODA_COMMON_KV_IDENTITY_H_
