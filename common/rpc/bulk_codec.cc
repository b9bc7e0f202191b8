#include "common/rpc/bulk_codec.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/crc32c.h"

namespace pagoda::rpc {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr int kPayloadField = 15;
constexpr uint32_t kPayloadTag = kPayloadField << 3 | 2;  // length-delimited
static_assert(kPayloadTag < 128, "the tag is one byte");

Status Malformed(std::string_view what) {
  return absl::InvalidArgumentError("bulk message: " + std::string(what));
}

grpc::Slice LendSlice(BlockView view) {
  auto* owner = new std::shared_ptr<const void>(std::move(view.owner));
  auto release = [](void* held) { delete static_cast<std::shared_ptr<const void>*>(held); };
  return grpc::Slice(const_cast<std::byte*>(view.data), view.size, release, owner);
}

std::vector<grpc::Slice> SlicesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  (void)buffer.Dump(&slices);  // fails for an invalid buffer only, and then leaves none
  return slices;
}

// Walks over bytes [at, at + bytes) of the buffer.
template <typename Visit>
void ForEachPiece(const grpc::ByteBuffer& buffer, size_t at, size_t bytes, Visit visit) {
  for (const grpc::Slice& slice : SlicesOf(buffer)) {
    if (bytes == 0) return;
    if (at >= slice.size()) {
      at -= slice.size();
      continue;
    }
    size_t count = std::min(bytes, slice.size() - at);
    visit(slice.begin() + at, count);
    bytes -= count;
    at = 0;
  }
}

// Where the payload field begins, and the payload. Without one both lie at the end of the buffer.
StatusOr<std::pair<size_t, BulkParts>> FindPayload(grpc::ByteBuffer buffer) {
  size_t total = buffer.Length();
  grpc::ProtoBufferReader reader(&buffer);
  CodedInputStream input(&reader);
  while (true) {
    size_t at = static_cast<size_t>(input.CurrentPosition());
    if (at > kMaxHeadBytes) return Malformed("more than 64 KiB before the payload");
    uint32_t tag = input.ReadTag();
    if (tag == 0) {
      if (at != total) return Malformed("broken field");
      return std::pair(at, BulkParts{total, 0});
    }
    if (WireFormatLite::GetTagFieldNumber(tag) != kPayloadField) {
      if (!WireFormatLite::SkipField(&input, tag)) return Malformed("broken field");
      continue;
    }
    uint32_t bytes = 0;
    if (tag != kPayloadTag || !input.ReadVarint32(&bytes)) return Malformed("broken payload field");
    size_t payload_at = static_cast<size_t>(input.CurrentPosition());
    if (total - payload_at != bytes) return Malformed("the payload is not the last field");
    return std::pair(at, BulkParts{payload_at, bytes});
  }
}

}  // namespace

grpc::ByteBuffer JoinBulkMessage(const google::protobuf::MessageLite& head, BlockView payload) {
  std::string front = head.SerializeAsString();
  if (payload.size == 0) {
    grpc::Slice slice(front);
    return grpc::ByteBuffer(&slice, 1);
  }
  uint8_t length[10];
  uint8_t* end =
      CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(payload.size), length);
  front += static_cast<char>(kPayloadTag);
  front.append(reinterpret_cast<const char*>(length), static_cast<size_t>(end - length));
  grpc::Slice slices[] = {grpc::Slice(front), LendSlice(std::move(payload))};
  return grpc::ByteBuffer(slices, 2);
}

StatusOr<BulkParts> SplitBulkMessage(const grpc::ByteBuffer& buffer,
                                     google::protobuf::MessageLite* head) {
  if (!buffer.Valid()) return Malformed("no bytes");
  PAGODA_ASSIGN_OR_RETURN(auto found, FindPayload(buffer));
  auto [head_bytes, parts] = found;
  std::string front;
  front.reserve(head_bytes);
  ForEachPiece(buffer, 0, head_bytes, [&](const uint8_t* data, size_t bytes) {
    front.append(reinterpret_cast<const char*>(data), bytes);
  });
  if (!head->ParseFromString(front)) return Malformed("broken head");
  return parts;
}

uint32_t CopyPayload(const grpc::ByteBuffer& buffer, const BulkParts& parts, std::byte* to) {
  uint32_t crc = 0;
  ForEachPiece(buffer, parts.payload_at, parts.payload_bytes,
               [&](const uint8_t* data, size_t bytes) {
                 crc = CopyWithCrc32c(to, data, bytes, crc);
                 to += bytes;
               });
  return crc;
}

grpc::ByteBuffer ToByteBuffer(const google::protobuf::MessageLite& message) {
  grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

Status FromByteBuffer(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* message) {
  grpc::ByteBuffer copy = buffer;
  if (!copy.Valid()) return Malformed("no bytes");
  grpc::ProtoBufferReader reader(&copy);
  if (!message->ParseFromZeroCopyStream(&reader)) return Malformed("broken encoding");
  return absl::OkStatus();
}

}  // namespace pagoda::rpc
