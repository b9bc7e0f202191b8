// What common/kv calls a thing, and what kvstore.proto does.
//
// Concurrency: plain functions.
#ifndef PAGODA_COMMON_RPC_BLOCK_WIRE_H_
#define PAGODA_COMMON_RPC_BLOCK_WIRE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/kv/block_store.h"
#include "pagoda/v1/kvstore.pb.h"

namespace pagoda::rpc {

v1::Tier ToWire(Tier tier);
Tier FromWire(v1::Tier tier);

// A put's final answers. FromWire of SEND or of what a later version adds is kFailed.
v1::PutResponse::Verdict ToWire(PutOutcome outcome);
PutOutcome FromWire(v1::PutResponse::Verdict verdict);

// The wire carries a time to live, the record an expiry: `unix_ms` is the time now.
v1::RecordMeta ToWire(const RecordMeta& meta, int64_t unix_ms);
RecordMeta FromWire(const v1::RecordMeta& meta, int64_t unix_ms);

// Keys side by side in one field, and back. A ref made from a key alone has no anchor and depth 0.
// Error: INVALID_ARGUMENT when the length is no multiple of 32, or there are over
// kMaxBlocksPerCall.
std::string PackKeys(const std::vector<BlockRef>& refs);
StatusOr<std::vector<BlockRef>> UnpackKeys(std::string_view keys);

}  // namespace pagoda::rpc

#endif  // PAGODA_COMMON_RPC_BLOCK_WIRE_H_
