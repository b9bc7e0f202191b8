// The names of KV blocks: what a block is called outside the process that computed it.
//
// A *store key* (BlockKey) is neither a logical block of a sequence nor a physical slot of a pool;
// those are integers of the worker and never leave it. Each kind of digest is a type of its own, so
// that a namespace cannot be passed where a key is meant. How they are made: identity.h,
// block_key_chain.h.
//
// Concurrency: plain values.
#ifndef PAGODA_COMMON_KV_BLOCK_KEY_H_
#define PAGODA_COMMON_KV_BLOCK_KEY_H_

#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/sha256.h"
#include "common/base/status.h"

namespace pagoda {

// A token id as the tokenizer, the wire and the engine hold it, in arrays that are hashed in place.
using TokenId = uint32_t;

// 32 bytes that mean one kind of thing. Ordered bytewise; all zero when default-made.
template <typename Tag>
struct TaggedDigest {
  static constexpr size_t kBytes = 32;

  Digest256 bytes{};

  std::string_view view() const { return AsBytes(bytes); }
  std::string ToHex() const { return pagoda::ToHex(view()); }
  bool IsZero() const { return *this == TaggedDigest{}; }

  // Error: INVALID_ARGUMENT when `raw` is not 32 bytes long.
  static StatusOr<TaggedDigest> FromBytes(std::string_view raw) {
    if (raw.size() != kBytes) {
      return absl::InvalidArgumentError("a digest is 32 bytes long, got " +
                                        std::to_string(raw.size()));
    }
    TaggedDigest digest;
    std::memcpy(digest.bytes.data(), raw.data(), kBytes);
    return digest;
  }

  friend bool operator==(const TaggedDigest&, const TaggedDigest&) = default;
  friend auto operator<=>(const TaggedDigest&, const TaggedDigest&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const TaggedDigest& digest) {
    return H::combine_contiguous(std::move(state), digest.bytes.data(), kBytes);
  }
};

using BlockKey = TaggedDigest<struct BlockKeyTag>;      // one block of one prefix in one namespace
using Space = TaggedDigest<struct SpaceTag>;            // what the bytes of a block are
using Namespace = TaggedDigest<struct NamespaceTag>;    // who may find them
using WeightsDigest = TaggedDigest<struct WeightsTag>;  // which weights and settings made them

// Blocks of a prefix come in runs of this many: a run lives on one shard and is looked up in one
// call.
inline constexpr uint32_t kRunBlocks = 32;

struct BlockRef {
  BlockKey key;
  BlockKey anchor;     // key of the first block of the run
  uint32_t depth = 0;  // the block's number in its prefix

  friend bool operator==(const BlockRef&, const BlockRef&) = default;
};

}  // namespace pagoda

// Keys are uniformly distributed; containers that face hostile keys use absl's seeded hash instead.
template <typename Tag>
struct std::hash<pagoda::TaggedDigest<Tag>> {
  size_t operator()(const pagoda::TaggedDigest<Tag>& digest) const noexcept {
    return pagoda::LoadLe<size_t>(digest.bytes.data());
  }
};

#endif  // PAGODA_COMMON_KV_BLOCK_KEY_H_
