#include "common/rpc/block_wire.h"

#include <algorithm>
#include <limits>

namespace pagoda::rpc {

v1::Tier ToWire(Tier tier) {
  switch (tier) {
    case Tier::kRam:
      return v1::RAM;
    case Tier::kDisk:
      return v1::DISK;
    case Tier::kNone:
      break;
  }
  return v1::TIER_UNSPECIFIED;
}

Tier FromWire(v1::Tier tier) {
  if (tier == v1::RAM) return Tier::kRam;
  return tier == v1::DISK ? Tier::kDisk : Tier::kNone;
}

v1::PutResponse::Verdict ToWire(PutOutcome outcome) {
  switch (outcome) {
    case PutOutcome::kStored:
      return v1::PutResponse::STORED;
    case PutOutcome::kHave:
      return v1::PutResponse::HAVE;
    case PutOutcome::kDivergent:
      return v1::PutResponse::DIVERGENT;
    case PutOutcome::kNoRoom:
      return v1::PutResponse::NO_ROOM;
    case PutOutcome::kCorrupt:
      return v1::PutResponse::CORRUPT;
    case PutOutcome::kFailed:
      break;
  }
  return v1::PutResponse::VERDICT_UNSPECIFIED;
}

PutOutcome FromWire(v1::PutResponse::Verdict verdict) {
  switch (verdict) {
    case v1::PutResponse::STORED:
      return PutOutcome::kStored;
    case v1::PutResponse::HAVE:
      return PutOutcome::kHave;
    case v1::PutResponse::DIVERGENT:
      return PutOutcome::kDivergent;
    case v1::PutResponse::NO_ROOM:
      return PutOutcome::kNoRoom;
    case v1::PutResponse::CORRUPT:
      return PutOutcome::kCorrupt;
    default:
      return PutOutcome::kFailed;
  }
}

v1::RecordMeta ToWire(const RecordMeta& meta, int64_t unix_ms) {
  v1::RecordMeta wire;
  wire.set_owner_tenant(meta.owner_tenant);
  wire.set_tenant_generation(meta.tenant_generation);
  wire.set_weight_epoch(meta.weight_epoch);
  wire.set_priority(meta.priority);
  if (meta.expires_unix_ms != 0) {
    // What has expired must not become "never".
    wire.set_ttl_ms(static_cast<uint64_t>(std::max<int64_t>(meta.expires_unix_ms - unix_ms, 1)));
  }
  return wire;
}

RecordMeta FromWire(const v1::RecordMeta& wire, int64_t unix_ms) {
  RecordMeta meta;
  meta.owner_tenant = wire.owner_tenant();
  meta.tenant_generation = wire.tenant_generation();
  meta.weight_epoch = wire.weight_epoch();
  meta.priority = wire.priority();
  meta.last_use_unix_ms = unix_ms;
  if (wire.ttl_ms() != 0) {
    uint64_t room = static_cast<uint64_t>(std::numeric_limits<int64_t>::max() - unix_ms);
    meta.expires_unix_ms = unix_ms + static_cast<int64_t>(std::min(wire.ttl_ms(), room));
  }
  return meta;
}

std::string PackKeys(const std::vector<BlockRef>& refs) {
  std::string keys;
  keys.reserve(refs.size() * BlockKey::kBytes);
  for (const BlockRef& ref : refs) keys += ref.key.view();
  return keys;
}

StatusOr<std::vector<BlockRef>> UnpackKeys(std::string_view keys) {
  if (keys.size() % BlockKey::kBytes != 0) {
    return absl::InvalidArgumentError("keys has " + std::to_string(keys.size()) +
                                      " bytes, must be a multiple of 32");
  }
  size_t count = keys.size() / BlockKey::kBytes;
  if (count > kMaxBlocksPerCall) {
    return absl::InvalidArgumentError("keys names " + std::to_string(count) + " blocks, at most " +
                                      std::to_string(kMaxBlocksPerCall));
  }
  std::vector<BlockRef> refs(count);
  for (size_t i = 0; i < count; ++i) {
    refs[i].key = *BlockKey::FromBytes(keys.substr(i * BlockKey::kBytes, BlockKey::kBytes));
  }
  return refs;
}

}  // namespace pagoda::rpc
