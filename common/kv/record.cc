#include "common/kv/record.h"

#include <algorithm>

#include "common/base/bytes.h"
#include "common/base/crc32c.h"

namespace pagoda {
namespace {

constexpr uint32_t kHeaderMagic = 0x42444750;  // "PGDB"
constexpr uint32_t kMetaMagic = 0x4d444750;    // "PGDM"
constexpr size_t kCrcBytes = 4;
constexpr size_t kMetaFixedBytes = 40;  // before the tenant
constexpr uint16_t kMetaVersion = 1;

// Reads fields one after another. REQUIRES: the caller checked that they are there.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <typename Int>
  Int Take() {
    Int value = LoadLe<Int>(bytes_.data());
    bytes_.remove_prefix(sizeof(Int));
    return value;
  }
  template <typename Digest>
  void TakeDigest(Digest& digest) {
    std::copy_n(bytes_.data(), Digest::kBytes, reinterpret_cast<char*>(digest.bytes.data()));
    bytes_.remove_prefix(Digest::kBytes);
  }
  std::string_view TakeBytes(size_t count) {
    std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

 private:
  std::string_view bytes_;
};

bool CrcHolds(std::string_view bytes) {
  size_t covered = bytes.size() - kCrcBytes;
  return Crc32c(bytes.data(), covered) == LoadLe<uint32_t>(bytes.data() + covered);
}

Status TooLarge(std::string_view field, uint64_t value, uint64_t limit) {
  return absl::InvalidArgumentError(std::string(field) + " is " + std::to_string(value) +
                                    ", must be 1 to " + std::to_string(limit));
}

}  // namespace

Status CheckHeader(const RecordHeader& header) {
  if (header.payload_bytes == 0 || header.payload_bytes > kMaxPayloadBytes) {
    return TooLarge("payload_bytes", header.payload_bytes, kMaxPayloadBytes);
  }
  if (header.token_count == 0 || header.token_count > kMaxTokensPerBlock) {
    return TooLarge("token_count", header.token_count, kMaxTokensPerBlock);
  }
  bool first_of_run = header.ref.depth % kRunBlocks == 0;
  if (first_of_run != (header.ref.anchor == header.ref.key)) {
    return absl::InvalidArgumentError("anchor " + header.ref.anchor.ToHex() +
                                      " does not fit depth " + std::to_string(header.ref.depth));
  }
  if (header.producer_build.size() > RecordHeader::kProducerBuildBytes ||
      header.producer_build.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("producer_build must be at most 16 bytes without NUL");
  }
  return absl::OkStatus();
}

std::string EncodeHeader(const RecordHeader& header) {
  std::string out;
  out.reserve(RecordHeader::kBytes);
  AppendLe(out, kHeaderMagic);
  AppendLe(out, RecordHeader::kVersion);
  AppendLe(out, static_cast<uint16_t>(RecordHeader::kBytes));
  out += header.ref.key.view();
  out += header.ref.anchor.view();
  AppendLe(out, header.ref.depth);
  AppendLe(out, header.token_count);
  out += header.space.view();
  out += header.name_space.view();
  AppendLe(out, header.payload_bytes);
  AppendLe(out, header.producer_instance);
  AppendLe(out, header.created_unix_ns);
  out += header.producer_build;
  out.resize(RecordHeader::kBytes - 16, '\0');  // the build's padding, then the reserved bytes
  AppendLe(out, uint64_t{0});
  AppendLe(out, header.payload_crc);
  AppendLe(out, Crc32c(out.data(), out.size()));
  return out;
}

StatusOr<RecordHeader> DecodeHeader(std::string_view bytes) {
  if (bytes.size() < RecordHeader::kBytes) {
    return absl::DataLossError("record header: " + std::to_string(bytes.size()) + " of " +
                               std::to_string(RecordHeader::kBytes) + " bytes");
  }
  Reader reader(bytes);
  if (reader.Take<uint32_t>() != kHeaderMagic) {
    return absl::DataLossError("record header: wrong magic");
  }
  if (uint16_t version = reader.Take<uint16_t>(); version != RecordHeader::kVersion) {
    return absl::UnimplementedError("record header: unknown version " + std::to_string(version));
  }
  bytes = bytes.substr(0, RecordHeader::kBytes);
  if (reader.Take<uint16_t>() != RecordHeader::kBytes || !CrcHolds(bytes)) {
    return absl::DataLossError("record header: wrong checksum");
  }
  RecordHeader header;
  reader.TakeDigest(header.ref.key);
  reader.TakeDigest(header.ref.anchor);
  header.ref.depth = reader.Take<uint32_t>();
  header.token_count = reader.Take<uint32_t>();
  reader.TakeDigest(header.space);
  reader.TakeDigest(header.name_space);
  header.payload_bytes = reader.Take<uint64_t>();
  header.producer_instance = reader.Take<uint64_t>();
  header.created_unix_ns = reader.Take<int64_t>();
  std::string_view build = reader.TakeBytes(RecordHeader::kProducerBuildBytes);
  header.producer_build = build.substr(0, build.find('\0'));
  reader.Take<uint64_t>();
  header.payload_crc = reader.Take<uint32_t>();
  if (Status status = CheckHeader(header); !status.ok()) {
    return absl::DataLossError("record header: " + std::string(status.message()));
  }
  // One header has one encoding: padding and reserved bytes are zero.
  if (EncodeHeader(header) != bytes) return absl::DataLossError("record header: stray bytes");
  return header;
}

Status CheckExpected(const RecordHeader& header, const ExpectedBlock& expected) {
  std::string_view field;
  if (header.ref.key != expected.ref.key) {
    field = "key";
  } else if (header.space != expected.space) {
    field = "space";
  } else if (header.name_space != expected.name_space) {
    field = "namespace";
  } else if (header.ref != expected.ref) {
    field = "place in the prefix";
  } else {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError("block " + expected.ref.key.ToHex() +
                                       ": the stored record has another " + std::string(field));
}

Status CheckPayload(const RecordHeader& header, std::string_view payload) {
  if (payload.size() != header.payload_bytes) {
    return absl::DataLossError("payload of " + std::to_string(payload.size()) +
                               " bytes, the header says " + std::to_string(header.payload_bytes));
  }
  if (Crc32c(payload.data(), payload.size()) != header.payload_crc) {
    return absl::DataLossError("payload: wrong checksum");
  }
  return absl::OkStatus();
}

std::string EncodeMeta(const RecordMeta& meta) {
  std::string out;
  AppendLe(out, kMetaMagic);
  AppendLe(out, kMetaVersion);
  AppendLe(out, static_cast<uint16_t>(meta.owner_tenant.size()));
  AppendLe(out, meta.tenant_generation);
  AppendLe(out, meta.priority);
  AppendLe(out, meta.weight_epoch);
  AppendLe(out, meta.expires_unix_ms);
  AppendLe(out, meta.last_use_unix_ms);
  out += meta.owner_tenant;
  AppendLe(out, Crc32c(out.data(), out.size()));
  return out;
}

StatusOr<RecordMeta> DecodeMeta(std::string_view bytes, size_t* encoded_bytes) {
  if (bytes.size() < kMetaFixedBytes + kCrcBytes) {
    return absl::DataLossError("record meta: too short");
  }
  Reader reader(bytes);
  if (reader.Take<uint32_t>() != kMetaMagic) return absl::DataLossError("record meta: wrong magic");
  if (uint16_t version = reader.Take<uint16_t>(); version != kMetaVersion) {
    return absl::UnimplementedError("record meta: unknown version " + std::to_string(version));
  }
  size_t tenant_bytes = reader.Take<uint16_t>();
  size_t total = kMetaFixedBytes + tenant_bytes + kCrcBytes;
  if (tenant_bytes > kMaxTenantBytes || bytes.size() < total || !CrcHolds(bytes.substr(0, total))) {
    return absl::DataLossError("record meta: wrong length or checksum");
  }
  RecordMeta meta;
  meta.tenant_generation = reader.Take<uint32_t>();
  meta.priority = reader.Take<int32_t>();
  meta.weight_epoch = reader.Take<uint64_t>();
  meta.expires_unix_ms = reader.Take<int64_t>();
  meta.last_use_unix_ms = reader.Take<int64_t>();
  meta.owner_tenant = bytes.substr(kMetaFixedBytes, tenant_bytes);
  *encoded_bytes = total;
  return meta;
}

std::string EncodeRecord(const RecordHeader& header, const RecordMeta& meta,
                         std::string_view payload) {
  return EncodeHeader(header) + EncodeMeta(meta) + std::string(payload);
}

StatusOr<Record> DecodeRecord(std::string_view bytes) {
  Record record;
  PAGODA_ASSIGN_OR_RETURN(record.header, DecodeHeader(bytes));
  bytes.remove_prefix(RecordHeader::kBytes);
  size_t meta_bytes = 0;
  PAGODA_ASSIGN_OR_RETURN(record.meta, DecodeMeta(bytes, &meta_bytes));
  record.payload = bytes.substr(meta_bytes);
  PAGODA_RETURN_IF_ERROR(CheckPayload(record.header, record.payload));
  return record;
}

}  // namespace pagoda
