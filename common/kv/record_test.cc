#include "common/kv/record.h"

#include "common/base/bytes.h"
#include "common/base/crc32c.h"
#include "common/base/random.h"
#include "common/kv/testing/test_blocks.h"
#include "gtest/gtest.h"

namespace pagoda {
namespace {

using testing::MakeChain;

RecordHeader Header() { return MakeChain(1, 40, 64)[35].header; }

// Sets the checksum of a tampered header right, as a hostile producer would.
void Seal(std::string& header) {
  size_t covered = RecordHeader::kBytes - 4;
  StoreLe(header.data() + covered, Crc32c(header.data(), covered));
}

TEST(Record, AHeaderHasTheBytesOfTheReadme) {
  RecordHeader header = Header();
  std::string bytes = EncodeHeader(header);
  ASSERT_EQ(bytes.size(), 200u);
  EXPECT_EQ(bytes.substr(0, 4), "PGDB");
  EXPECT_EQ(LoadLe<uint16_t>(bytes.data() + 4), 1);
  EXPECT_EQ(LoadLe<uint16_t>(bytes.data() + 6), 200);
  EXPECT_EQ(bytes.substr(8, 32), header.ref.key.view());
  EXPECT_EQ(bytes.substr(40, 32), header.ref.anchor.view());
  EXPECT_EQ(LoadLe<uint32_t>(bytes.data() + 72), 35u);
  EXPECT_EQ(LoadLe<uint32_t>(bytes.data() + 76), header.token_count);
  EXPECT_EQ(bytes.substr(80, 32), header.space.view());
  EXPECT_EQ(bytes.substr(112, 32), header.name_space.view());
  EXPECT_EQ(LoadLe<uint64_t>(bytes.data() + 144), 64u);
  EXPECT_EQ(LoadLe<uint64_t>(bytes.data() + 152), header.producer_instance);
  EXPECT_EQ(LoadLe<int64_t>(bytes.data() + 160), header.created_unix_ns);
  EXPECT_EQ(bytes.substr(168, 5), std::string("test\0", 5));
  EXPECT_EQ(LoadLe<uint64_t>(bytes.data() + 184), 0u);
  EXPECT_EQ(LoadLe<uint32_t>(bytes.data() + 192), header.payload_crc);
  EXPECT_EQ(LoadLe<uint32_t>(bytes.data() + 196), Crc32c(bytes.data(), 196));
  auto decoded = DecodeHeader(bytes + "more");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, header);
}

// What testdata/make_record_vector.py prints: header, meta, payload.
constexpr char kRecordHex[] =
    "504744420100c8000101010101010101010101010101010101010101010101010101010101010101"
    "02020202020202020202020202020202020202020202020202020202020202022300000020000000"
    "03030303030303030303030303030303030303030303030303030303030303030404040404040404"
    "0404040404040404040404040404040404040404040404040700000000000000f8f7f6f5f4f3f2f1"
    "15cd853dfe9c9717302e312e30000000000000000000000000000000000000007069e3f4aaf4b79d"
    "5047444d0100040003000000feffffff050000000001000000505c18a30100000068e5cf8b010000"
    "61636d6510508d52"
    "7061796c6f6164";

TEST(Record, R12CommittedBytesOfVersion1AreReadAndWrittenAsBefore) {
  RecordHeader header;
  header.ref.key.bytes.fill(1);
  header.ref.anchor.bytes.fill(2);
  header.ref.depth = 35;
  header.space.bytes.fill(3);
  header.name_space.bytes.fill(4);
  header.token_count = 32;
  header.payload_bytes = 7;
  header.payload_crc = Crc32c("payload", 7);
  header.producer_instance = 0xF1F2F3F4F5F6F7F8;
  header.producer_build = "0.1.0";
  header.created_unix_ns = 1'700'000'000'123'456'789;
  RecordMeta meta{"acme", 3, (1ull << 40) + 5, -2, 1'800'000'000'000, 1'700'000'000'000};

  const std::string bytes = *FromHex(kRecordHex);
  EXPECT_EQ(ToHex(EncodeRecord(header, meta, "payload")), kRecordHex);
  auto record = DecodeRecord(bytes);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->header, header);
  EXPECT_EQ(record->meta, meta);
  EXPECT_EQ(record->payload, "payload");
}

TEST(Record, AnyFlippedBitOfAHeaderIsFound) {
  std::string bytes = EncodeHeader(Header());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string bad = bytes;
    bad[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_FALSE(DecodeHeader(bad).ok()) << bit;
  }
}

TEST(Record, AnUnknownVersionIsNotCorruptButUnknown) {
  std::string bytes = EncodeHeader(Header());
  StoreLe<uint16_t>(bytes.data() + 4, 2);
  Seal(bytes);
  EXPECT_EQ(DecodeHeader(bytes).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(Record, ValidChecksumsDoNotMakeImpossibleValuesGood) {
  const std::vector<std::pair<size_t, uint64_t>> tampered = {
      {144, 0}, {144, kMaxPayloadBytes + 1}, {144, UINT64_MAX}, {144, UINT64_MAX - 199}, {184, 1}};
  for (auto [offset, value] : tampered) {
    std::string bytes = EncodeHeader(Header());
    StoreLe<uint64_t>(bytes.data() + offset, value);
    Seal(bytes);
    EXPECT_EQ(DecodeHeader(bytes).status().code(), absl::StatusCode::kDataLoss) << offset;
  }
  for (auto [offset, value] :
       {std::pair<size_t, uint32_t>{76, 0}, {76, kMaxTokensPerBlock + 1}, {72, 64}}) {
    std::string bytes = EncodeHeader(Header());
    StoreLe<uint32_t>(bytes.data() + offset, value);
    Seal(bytes);
    EXPECT_EQ(DecodeHeader(bytes).status().code(), absl::StatusCode::kDataLoss) << offset;
  }
  std::string stray = EncodeHeader(Header());
  stray[183] = 'x';  // behind the NUL that ends the build
  Seal(stray);
  EXPECT_FALSE(DecodeHeader(stray).ok());
}

TEST(Record, R8TheHeaderOfAnotherBlockSpaceOrNamespaceIsRefused) {
  RecordHeader header = Header();
  ExpectedBlock good{header.ref, header.space, header.name_space};
  EXPECT_TRUE(CheckExpected(header, good).ok());
  ExpectedBlock key = good, space = good, name_space = good, depth = good, anchor = good;
  key.ref.key.bytes[0] ^= 1;
  space.space.bytes[31] ^= 1;
  name_space.name_space.bytes[5] ^= 1;
  depth.ref.depth += 32;
  anchor.ref.anchor.bytes[1] ^= 1;
  for (const ExpectedBlock& bad : {key, space, name_space, depth, anchor}) {
    EXPECT_EQ(CheckExpected(header, bad).code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_NE(CheckExpected(header, name_space).message().find("namespace"), std::string::npos);
}

TEST(Record, MetaComesBackAndItsDamageIsFound) {
  RecordMeta meta{"tenant", 3, 1ull << 40, -2, 1'700'000'000'000, 5};
  std::string bytes = EncodeMeta(meta);
  size_t length = 0;
  auto decoded = DecodeMeta(bytes + "payload", &length);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, meta);
  EXPECT_EQ(length, bytes.size());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string bad = bytes;
    bad[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_FALSE(DecodeMeta(bad, &length).ok()) << bit;
  }
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(DecodeMeta(bytes.substr(0, cut), &length).ok());
  }
}

TEST(Record, AWholeRecordIsVerifiedWhenItIsRead) {
  PutBlock block = MakeChain(1, 1, 1000)[0];
  std::string bytes = EncodeRecord(block.header, block.meta, block.payload.bytes());
  auto record = DecodeRecord(bytes);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->header, block.header);
  EXPECT_EQ(record->meta, block.meta);
  EXPECT_EQ(record->payload, block.payload.bytes());
  std::string flipped = bytes;
  flipped[bytes.size() - 500] ^= 4;
  EXPECT_EQ(DecodeRecord(flipped).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(DecodeRecord(bytes + "x").ok());
  for (size_t cut = 0; cut < bytes.size(); cut += 7) {
    EXPECT_FALSE(DecodeRecord(bytes.substr(0, cut)).ok());
  }
}

TEST(Record, RandomBytesNeverDecode) {
  uint64_t state = RandomId();
  SCOPED_TRACE("seed " + std::to_string(state));
  std::string good = EncodeHeader(Header()) + EncodeMeta({});
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes[(state >> 33) % bytes.size()] ^= static_cast<char>(1 + (state >> 20) % 255);
    }
    size_t length = 0;
    auto header = DecodeHeader(bytes);
    EXPECT_TRUE(!header.ok() || bytes.substr(0, 200) == good.substr(0, 200));
    auto meta = DecodeMeta(std::string_view(bytes).substr(200), &length);
    EXPECT_TRUE(!meta.ok() || bytes.substr(200) == good.substr(200));
  }
}

}  // namespace
}  // namespace pagoda
