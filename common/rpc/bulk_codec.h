// Bulk messages (GetResponse, PutRequest) without the generated class for their payload.
//
// Such a message is a *head* (small fields) and then `bytes payload = 15` as its last field.
// Writing appends a slice that refers to the payload where it lies; reading finds where the payload
// begins in the received buffer, so that it is copied once, into its final place, with its checksum
// in that pass. The bytes are plain protobuf. Heads are small messages of the generated classes.
//
// Concurrency: plain functions.
#ifndef PAGODA_COMMON_RPC_BULK_CODEC_H_
#define PAGODA_COMMON_RPC_BULK_CODEC_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/kv/block_store.h"

namespace pagoda::rpc {

// An offer of 64 headers with their meta is under 40 KiB.
inline constexpr size_t kMaxHeadBytes = 64 << 10;

// The whole message; its slice keeps `payload.owner` until gRPC lets go of it. A payload without
// bytes is left out. REQUIRES: `head` holds no field behind 14.
grpc::ByteBuffer JoinBulkMessage(const google::protobuf::MessageLite& head, BlockView payload);

struct BulkParts {
  size_t payload_at = 0;     // offset in the buffer
  size_t payload_bytes = 0;  // 0 when there is no payload
};

// Parses what stands before the payload into `head` and says where the payload is. Error:
// INVALID_ARGUMENT when the bytes are no such message: broken encoding, a head over kMaxHeadBytes,
// or a payload that is not the last field.
StatusOr<BulkParts> SplitBulkMessage(const grpc::ByteBuffer& buffer,
                                     google::protobuf::MessageLite* head);

// Copies the payload to `to` and answers its CRC32C.
uint32_t CopyPayload(const grpc::ByteBuffer& buffer, const BulkParts& parts, std::byte* to);

// A small message as a buffer, and back. Error: INVALID_ARGUMENT.
grpc::ByteBuffer ToByteBuffer(const google::protobuf::MessageLite& message);
Status FromByteBuffer(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* message);

}  // namespace pagoda::rpc

#endif  // PAGODA_COMMON_RPC_BULK_CODEC_H_
