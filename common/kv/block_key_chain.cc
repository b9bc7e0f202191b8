#include "common/kv/block_key_chain.h"

#include <algorithm>
#include <cstring>

namespace pagoda {
namespace {

constexpr std::string_view kTag = "pagoda.blk.v1";
constexpr size_t kNamespaceAt = kTag.size();
constexpr size_t kPreviousAt = kNamespaceAt + Namespace::kBytes;
constexpr size_t kTokensAt = kPreviousAt + BlockKey::kBytes;

}  // namespace

BlockKeyChain::BlockKeyChain(const Namespace& tenant, const Namespace& shared, CacheScope scope,
                             uint32_t block_tokens)
    : tenant_(tenant), shared_(shared), scope_(scope), block_tokens_(block_tokens) {
  message_.assign(kTag);
  message_.append(kTokensAt - kTag.size(), '\0');
  message_.reserve(kTokensAt + block_tokens * sizeof(TokenId));
}

void BlockKeyChain::Append(std::span<const TokenId> tokens) {
  if (!scope_.keyed()) {
    num_tokens_ += tokens.size();
    return;
  }
  while (!tokens.empty()) {
    size_t room = block_tokens_ - num_tokens_ % block_tokens_;
    size_t count = std::min(room, tokens.size());
    message_.append(reinterpret_cast<const char*>(tokens.data()), count * sizeof(TokenId));
    num_tokens_ += count;
    tokens = tokens.subspan(count);
    if (count == room) FinishBlock();
  }
}

const Namespace& BlockKeyChain::NamespaceOf(size_t index) const {
  return index < scope_.shared_tokens() / block_tokens_ ? shared_ : tenant_;
}

void BlockKeyChain::FinishBlock() {
  size_t index = refs_.size();
  std::memcpy(message_.data() + kNamespaceAt, NamespaceOf(index).bytes.data(), Namespace::kBytes);
  if (index > 0) {
    std::memcpy(message_.data() + kPreviousAt, refs_.back().key.bytes.data(), BlockKey::kBytes);
  }
  hash_.Update(message_);
  BlockRef ref;
  ref.key.bytes = hash_.Finish();
  ref.depth = static_cast<uint32_t>(index);
  ref.anchor = index % kRunBlocks == 0 ? ref.key : refs_.back().anchor;
  refs_.push_back(ref);
  message_.resize(kTokensAt);
}

}  // namespace pagoda
