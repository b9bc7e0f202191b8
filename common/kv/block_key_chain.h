// The keys of one request's full blocks, made as its tokens come:
//
//   key[i]    = SHA256("pagoda.blk.v1" | namespace(i) | key[i-1] (zero for i = 0)
//                      | u32le tokens of block i)
//   anchor(i) = key[i - i mod 32]
//
// namespace(i) is the shared one while block i lies wholly inside the request's shared range, and
// the tenant's from the first block that does not. Only full blocks have a key.
//
// Concurrency: one thread at a time.
#ifndef PAGODA_COMMON_KV_BLOCK_KEY_CHAIN_H_
#define PAGODA_COMMON_KV_BLOCK_KEY_CHAIN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/sha256.h"
#include "common/kv/block_key.h"

namespace pagoda {

// The request field `cache_scope`.
class CacheScope {
 public:
  static CacheScope None() { return CacheScope(false, 0); }   // nothing is keyed
  static CacheScope Tenant() { return CacheScope(true, 0); }  // all of it is the tenant's
  static CacheScope Shared() { return CacheScope(true, UINT64_MAX); }
  // The first `tokens` tokens are shared, the rest is the tenant's. REQUIRES: at most the prompt's
  // length, so that no generated block is shared by accident.
  static CacheScope SharedTokens(uint64_t tokens) { return CacheScope(true, tokens); }

  bool keyed() const { return keyed_; }
  uint64_t shared_tokens() const { return shared_tokens_; }

 private:
  CacheScope(bool keyed, uint64_t shared_tokens) : keyed_(keyed), shared_tokens_(shared_tokens) {}

  bool keyed_;
  uint64_t shared_tokens_;
};

class BlockKeyChain {
 public:
  // REQUIRES: block_tokens > 0. `shared` is used for blocks of the scope's shared range only.
  BlockKeyChain(const Namespace& tenant, const Namespace& shared, CacheScope scope,
                uint32_t block_tokens);

  // Adds tokens and makes the keys of the blocks that became full.
  void Append(std::span<const TokenId> tokens);

  // One ref for each full block so far, in order; none under CacheScope::None. Valid until the next
  // Append.
  const std::vector<BlockRef>& refs() const { return refs_; }

  // The namespace that block `index` belongs to; for the check of a loaded header.
  const Namespace& NamespaceOf(size_t index) const;

  uint64_t num_tokens() const { return num_tokens_; }
  uint32_t block_tokens() const { return block_tokens_; }

 private:
  void FinishBlock();

  const Namespace tenant_;
  const Namespace shared_;
  const CacheScope scope_;
  const uint32_t block_tokens_;
  uint64_t num_tokens_ = 0;
  std::string message_;  // tag, namespace, previous key, then the tokens of the block being filled
  Sha256 hash_;
  std::vector<BlockRef> refs_;
};

}  // namespace pagoda

#endif  // PAGODA_COMMON_KV_BLOCK_KEY_CHAIN_H_
