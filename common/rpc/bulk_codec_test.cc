#include "common/rpc/bulk_codec.h"

#include <memory>
#include <vector>

#include "common/base/crc32c.h"
#include "common/base/random.h"
#include "common/kv/testing/test_blocks.h"
#include "gtest/gtest.h"
#include "pagoda/v1/kvstore.pb.h"

namespace pagoda::rpc {
namespace {

using ::pagoda::testing::OwnedView;

// The bytes of a buffer, and a buffer whose slices are `piece` bytes long.
std::string Flatten(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

grpc::ByteBuffer Cut(const std::string& bytes, size_t piece) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += piece) slices.emplace_back(bytes.substr(at, piece));
  if (slices.empty()) slices.emplace_back(std::string());
  return grpc::ByteBuffer(slices.data(), slices.size());
}

v1::GetResponse Head() {
  v1::GetResponse head;
  head.set_index(300);
  head.set_outcome(v1::GetResponse::FOUND);
  head.set_tier(v1::RAM);
  head.set_header(std::string(200, 'h'));
  return head;
}

std::string Payload(size_t bytes) {
  std::string payload(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) payload[i] = static_cast<char>(i * 31 + i / 256);
  return payload;
}

TEST(BulkCodec, WhatWeWriteIsWhatTheGeneratedClassWrites) {
  v1::PutRequest put_head;
  put_head.set_block_id(UINT64_MAX);
  put_head.set_header(std::string(200, 'h'));
  put_head.mutable_meta()->set_priority(-5);
  for (size_t bytes : {0, 1, 127, 128, 16383, 16384, 300'000}) {
    const std::string payload = Payload(bytes);
    v1::GetResponse got = Head();
    got.set_payload(payload);
    EXPECT_EQ(Flatten(JoinBulkMessage(Head(), OwnedView(payload))), got.SerializeAsString());
    v1::PutRequest put = put_head;
    put.set_payload(payload);
    EXPECT_EQ(Flatten(JoinBulkMessage(put_head, OwnedView(payload))), put.SerializeAsString());
  }
}

TEST(BulkCodec, WhatTheGeneratedClassWritesWeReadHoweverItIsCut) {
  v1::PutRequest message;
  message.set_block_id(UINT64_MAX);
  message.set_header(std::string(200, 'h'));
  message.mutable_meta()->set_owner_tenant("acme");
  message.mutable_meta()->set_priority(-5);
  message.set_payload(Payload(1000));
  for (size_t piece : {1, 2, 3, 7, 199, 250, 5000}) {
    grpc::ByteBuffer buffer = Cut(message.SerializeAsString(), piece);
    v1::PutRequest head;
    auto parts = SplitBulkMessage(buffer, &head);
    ASSERT_TRUE(parts.ok()) << parts.status();
    EXPECT_EQ(head.block_id(), UINT64_MAX);
    EXPECT_EQ(head.meta().owner_tenant(), "acme");
    EXPECT_EQ(head.meta().priority(), -5);
    EXPECT_TRUE(head.payload().empty());
    std::string payload(parts->payload_bytes, '\0');
    uint32_t crc = CopyPayload(buffer, *parts, reinterpret_cast<std::byte*>(payload.data()));
    EXPECT_EQ(payload, message.payload());
    EXPECT_EQ(crc, Crc32c(payload.data(), payload.size()));
  }
}

TEST(BulkCodec, AMessageWithoutPayloadIsAllHead) {
  v1::PutRequest message;
  message.mutable_offer()->add_blocks()->set_block_id(7);
  v1::PutRequest head;
  auto parts = SplitBulkMessage(Cut(message.SerializeAsString(), 3), &head);
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(parts->payload_bytes, 0u);
  EXPECT_EQ(head.offer().blocks(0).block_id(), 7u);
  EXPECT_TRUE(SplitBulkMessage(Cut("", 1), &head).ok());
}

TEST(BulkCodec, FieldsThatALaterVersionAddsAreSkipped) {
  std::string bytes = Head().SerializeAsString();
  bytes += std::string(
      "\x72\x03"
      "new",
      5);  // field 14, three bytes
  bytes += std::string(
      "\x7a\x02"
      "ab",
      4);
  v1::GetResponse head;
  auto parts = SplitBulkMessage(Cut(bytes, 10), &head);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(parts->payload_bytes, 2u);
  EXPECT_EQ(head.index(), 300u);
}

TEST(BulkCodec, TheSlicesOwnerIsReleasedWithTheBuffer) {
  BlockView view = OwnedView(Payload(100'000));
  std::weak_ptr<const void> owner = view.owner;
  {
    grpc::ByteBuffer buffer = JoinBulkMessage(Head(), std::move(view));
    view = {};
    EXPECT_FALSE(owner.expired());
  }
  EXPECT_TRUE(owner.expired());
}

TEST(BulkCodec, BrokenMessagesAreRefused) {
  const std::string good = Head().SerializeAsString();
  const std::vector<std::string> broken = {
      good + "\x7a",  // no length
      good +
          "\x7a\x05"
          "abc",  // shorter than it says
      good +
          "\x7a\x02"
          "abc",  // longer than it says
      good +
          "\x7a\x01"
          "a" +
          good,  // not last
      good +
          "\x7a\xff\xff\xff\xff\x0f"
          "abc",  // 4 GiB
      good +
          "\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
          "abc",                        // 2^64 - 1
      good + "\x78\x01",                // field 15 as a number
      good.substr(0, good.size() - 1),  // a cut header field
      "\x22\xff\xff\xff\x7f"
      "abc",                 // a header of 256 MiB
      "\x07",                // no such wire type
      std::string(1, '\0'),  // field 0
  };
  for (size_t i = 0; i < broken.size(); ++i) {
    v1::GetResponse head;
    EXPECT_EQ(SplitBulkMessage(Cut(broken[i], 64), &head).status().code(),
              absl::StatusCode::kInvalidArgument)
        << i;
  }
}

TEST(BulkCodec, ALargeHeadIsRefusedBeforeItIsCopied) {
  v1::GetResponse message = Head();
  message.set_header(std::string(kMaxHeadBytes + 1, 'h'));
  message.set_payload("abc");
  v1::GetResponse head;
  EXPECT_FALSE(SplitBulkMessage(Cut(message.SerializeAsString(), 1 << 16), &head).ok());
}

TEST(BulkCodec, RandomBytesGiveAnErrorOrWhatTheGeneratedClassReads) {
  uint64_t state = RandomId();
  SCOPED_TRACE("seed " + std::to_string(state));
  auto next = [&] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; };
  v1::GetResponse original = Head();
  original.set_header("short");
  original.set_payload(Payload(20));
  const std::string good = original.SerializeAsString();
  int accepted = 0;
  for (int round = 0; round < 30'000; ++round) {
    std::string bytes = good;
    if (round % 3 == 0) {
      bytes.resize(next() % 40);
      for (char& byte : bytes) byte = static_cast<char>(next());
    } else {
      for (int i = 0; i < 2; ++i) bytes[next() % bytes.size()] = static_cast<char>(next());
    }
    grpc::ByteBuffer buffer = Cut(bytes, 1 + next() % 16);
    v1::GetResponse head;
    auto parts = SplitBulkMessage(buffer, &head);
    if (!parts.ok()) continue;
    ++accepted;
    v1::GetResponse generated;
    ASSERT_TRUE(generated.ParseFromString(bytes));
    std::string payload(parts->payload_bytes, '\0');
    CopyPayload(buffer, *parts, reinterpret_cast<std::byte*>(payload.data()));
    ASSERT_EQ(generated.payload(), payload);
    ASSERT_EQ(generated.index(), head.index());
    ASSERT_EQ(generated.header(), head.header());
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace pagoda::rpc
