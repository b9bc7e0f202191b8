// The stored record of a block: header + meta + payload. The byte layout stands in README.md.
//
// The header is immutable and has its own CRC32C; the payload's CRC32C stands in it. Meta is what a
// store may change. Decoding trusts nothing: any bytes give a record or an error, never a crash.
// Token ids are never stored.
//
// Concurrency: plain functions and values.
#ifndef PAGODA_COMMON_KV_RECORD_H_
#define PAGODA_COMMON_KV_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/kv/block_key.h"

namespace pagoda {

inline constexpr uint64_t kMaxPayloadBytes = uint64_t{64} << 20;  // a block travels in one message
inline constexpr uint32_t kMaxTokensPerBlock =
    4096;                                       // far over any block size; bounds hostile values
inline constexpr size_t kMaxTenantBytes = 256;  // tenant ids come from certificates and key files

struct RecordHeader {
  static constexpr uint16_t kVersion = 1;
  static constexpr size_t kBytes = 200;  // of the encoded header
  static constexpr size_t kProducerBuildBytes = 16;

  BlockRef ref;
  Space space;
  Namespace name_space;
  uint32_t token_count = 0;
  uint64_t payload_bytes = 0;
  uint32_t payload_crc = 0;        // CRC32C
  uint64_t producer_instance = 0;  // who computed the block
  std::string producer_build;      // its version, at most 16 bytes, no NUL
  int64_t created_unix_ns = 0;

  friend bool operator==(const RecordHeader&, const RecordHeader&) = default;
};

struct RecordMeta {
  std::string owner_tenant;  // who is charged: the first who put the block
  uint32_t tenant_generation = 0;
  uint64_t weight_epoch = 0;
  int32_t priority = 0;
  int64_t expires_unix_ms = 0;  // 0: never
  int64_t last_use_unix_ms = 0;

  friend bool operator==(const RecordMeta&, const RecordMeta&) = default;
};

// What the reader knows about a block before it reads it (R8).
struct ExpectedBlock {
  BlockRef ref;
  Space space;
  Namespace name_space;
};

// REQUIRES: CheckHeader(header) is OK.
std::string EncodeHeader(const RecordHeader& header);

// Decodes the first RecordHeader::kBytes of `bytes`. Errors:
//   DATA_LOSS      too short, wrong magic or checksum, or values that CheckHeader refuses
//   UNIMPLEMENTED  a format version that this build does not know: a miss
StatusOr<RecordHeader> DecodeHeader(std::string_view bytes);

// What holds for every header: sizes within their limits, an anchor that fits the depth. Error:
// INVALID_ARGUMENT naming the field, its value and the limit.
Status CheckHeader(const RecordHeader& header);

// Whether the header is that of the block that was asked for. Error: FAILED_PRECONDITION naming the
// field that differs.
Status CheckExpected(const RecordHeader& header, const ExpectedBlock& expected);

// Error: DATA_LOSS when length or CRC32C are not those of the header.
Status CheckPayload(const RecordHeader& header, std::string_view payload);

// REQUIRES: owner_tenant of at most kMaxTenantBytes.
std::string EncodeMeta(const RecordMeta& meta);
// Decodes the meta at the start of `bytes` and says how long it was. Errors as DecodeHeader.
StatusOr<RecordMeta> DecodeMeta(std::string_view bytes, size_t* encoded_bytes);

// A whole record, and its parts; `payload` views into `bytes`.
struct Record {
  RecordHeader header;
  RecordMeta meta;
  std::string_view payload;
};
std::string EncodeRecord(const RecordHeader& header, const RecordMeta& meta,
                         std::string_view payload);
// Errors as DecodeHeader; the payload is checked, and nothing may follow it.
StatusOr<Record> DecodeRecord(std::string_view bytes);

}  // namespace pagoda

#endif  // PAGODA_COMMON_KV_RECORD_H_
