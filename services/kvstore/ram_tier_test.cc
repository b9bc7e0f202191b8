#include "services/kvstore/ram_tier.h"

#include <malloc.h>

#include <atomic>
#include <thread>

#include "common/base/crc32c.h"
#include "common/base/random.h"
#include "common/kv/testing/test_blocks.h"
#include "gtest/gtest.h"

namespace pagoda::kvstore {
namespace {

using testing::Diverge;
using testing::FindAndWait;
using testing::GetAndWait;
using testing::MakeChain;
using testing::PutAndWait;
using testing::RecordingSink;
using testing::RefsOf;

constexpr size_t kPayload = 4096 - 256;  // a slot of 4096 bytes

std::unique_ptr<RamTier> Tier(size_t slots, Metrics* metrics = nullptr) {
  return *RamTier::Create({.bytes = slots * 4096, .policy = nullptr, .metrics = metrics});
}

uint64_t UsedBytes(RamTier& tier) { return tier.Stats()->tiers[0].bytes_used; }

size_t CountHeld(RamTier& tier, const std::vector<PutBlock>& blocks) {
  size_t held = 0;
  for (Held h : FindAndWait(tier, RefsOf(blocks)).blocks) held += h ? 1 : 0;
  return held;
}

TEST(RamTier, AFullTierEvictsTheLeastRecentlyReadChainLeafFirst) {
  auto tier = Tier(6);
  auto a = MakeChain(1, 3, kPayload), b = MakeChain(2, 3, kPayload), c = MakeChain(3, 2, kPayload);
  PutAndWait(*tier, a);
  PutAndWait(*tier, b);
  GetAndWait(*tier, RefsOf(a));
  PutAndWait(*tier, c);
  EXPECT_EQ(CountHeld(*tier, a), 3u);
  EXPECT_EQ(CountHeld(*tier, c), 2u);
  auto held = FindAndWait(*tier, RefsOf(b)).blocks;
  EXPECT_TRUE(held[0]);
  EXPECT_FALSE(held[1]);
  EXPECT_FALSE(held[2]);
  EXPECT_EQ(tier->Stats()->tiers[0].evicted_blocks, 2u);
  EXPECT_TRUE(tier->CheckIntegrity().ok());
}

TEST(RamTier, R43ALookupNeitherPinsNorRenewsABlock) {
  auto tier = Tier(2);
  auto a = MakeChain(1, 1, kPayload), b = MakeChain(2, 1, kPayload), c = MakeChain(3, 1, kPayload);
  PutAndWait(*tier, a);
  PutAndWait(*tier, b);
  FindAndWait(*tier, RefsOf(a));
  PutAndWait(*tier, c);
  EXPECT_EQ(CountHeld(*tier, a), 0u);
}

TEST(RamTier, ABlockThatIsReadOnIsNotEvictedAndItsBytesStay) {
  auto tier = Tier(2);
  auto a = MakeChain(1, 2, kPayload);
  PutAndWait(*tier, a);
  auto reader = GetAndWait(*tier, RefsOf(a), RecordingSink::Mode::kLend);
  auto b = MakeChain(2, 1, kPayload);
  auto refused = PutAndWait(*tier, b);
  EXPECT_EQ(refused[0].outcome, PutOutcome::kNoRoom);
  EXPECT_GT(refused[0].retry_ms, 0u);
  EXPECT_EQ(CountHeld(*tier, a), 2u) << "what is read on is not forgotten for nothing";
  EXPECT_EQ(reader->bytes(1), a[1].payload.bytes());
  reader = nullptr;
  EXPECT_EQ(PutAndWait(*tier, b)[0].outcome, PutOutcome::kStored);
  EXPECT_TRUE(tier->CheckIntegrity().ok());
}

TEST(RamTier, ABlockLargerThanTheTierIsRefusedWithoutEvictingAnything) {
  auto tier = Tier(4);
  auto small = MakeChain(1, 4, kPayload);
  PutAndWait(*tier, small);
  EXPECT_EQ(PutAndWait(*tier, MakeChain(2, 1, 5 * 4096))[0].outcome, PutOutcome::kNoRoom);
  EXPECT_EQ(CountHeld(*tier, small), 4u);
}

TEST(RamTier, ALargeBlockMakesSmallOnesGo) {
  auto tier = Tier(8);
  auto small = MakeChain(1, 8, kPayload);
  PutAndWait(*tier, small);
  auto large = MakeChain(2, 1, 3 * 4096);
  EXPECT_EQ(PutAndWait(*tier, large)[0].outcome, PutOutcome::kStored);
  EXPECT_EQ(CountHeld(*tier, small), 4u);
  EXPECT_TRUE(tier->CheckIntegrity().ok());
}

TEST(RamTier, ManySmallBlocksAreBoundedByNumberToo) {
  auto tier = Tier(8);  // 32 KiB: 64 slots of 512 bytes, but at most 8 blocks in the index
  auto blocks = MakeChain(1, 30, 100);
  PutAndWait(*tier, blocks);
  EXPECT_EQ(tier->Stats()->tiers[0].blocks, 8u);
  EXPECT_TRUE(tier->CheckIntegrity().ok());
}

TEST(RamTier, RoomThatIsReservedAndGivenUpIsFreeAgain) {
  auto tier = Tier(2);
  auto blocks = MakeChain(1, 2, kPayload);
  {
    ReserveResult first = tier->Reserve(tier->StartCall(), blocks[0].header, {});
    ReserveResult second = tier->Reserve(tier->StartCall(), blocks[1].header, {});
    ASSERT_NE(first.room, nullptr);
    ASSERT_NE(second.room, nullptr);
    EXPECT_EQ(UsedBytes(*tier), 2 * 4096u);
    EXPECT_EQ(CountHeld(*tier, blocks), 0u) << "not visible before the commit";
    auto other = MakeChain(2, 1, kPayload);
    EXPECT_EQ(tier->Reserve(tier->StartCall(), other[0].header, {}).refusal.outcome,
              PutOutcome::kNoRoom);
  }
  EXPECT_EQ(UsedBytes(*tier), 0u);
  EXPECT_TRUE(tier->CheckIntegrity().ok());
}

TEST(RamTier, OfTwoPutsInFlightForOneKeyTheFirstToCommitStays) {
  auto tier = Tier(4);
  PutBlock block = MakeChain(1, 1, kPayload)[0], other = Diverge(block);
  ReserveResult first = tier->Reserve(tier->StartCall(), block.header, {});
  ReserveResult same = tier->Reserve(tier->StartCall(), block.header, {});
  ReserveResult divergent = tier->Reserve(tier->StartCall(), other.header, {});
  auto fill = [](ReserveResult& room, const PutBlock& from) {
    uint32_t crc = CopyWithCrc32c(room.room->payload(), from.payload.data, from.payload.size);
    return room.room->Commit(crc).outcome;
  };
  EXPECT_EQ(fill(first, block), PutOutcome::kStored);
  EXPECT_EQ(fill(same, block), PutOutcome::kHave);
  EXPECT_EQ(fill(divergent, other), PutOutcome::kDivergent);
  EXPECT_EQ(GetAndWait(*tier, {block.header.ref})->bytes(0), block.payload.bytes());
  EXPECT_EQ(UsedBytes(*tier), 4096u);
}

TEST(RamTier, BytesThatChangedInTheSlabAreCorruptDroppedAndCounted) {
  Metrics metrics;
  auto tier = Tier(4, &metrics);
  auto blocks = MakeChain(1, 2, kPayload);
  PutAndWait(*tier, blocks);
  for (ptrdiff_t offset : {100, -200}) {  // in the payload of one, in the header of the other
    size_t i = offset > 0 ? 0 : 1;
    auto lent = GetAndWait(*tier, {blocks[i].header.ref}, RecordingSink::Mode::kLend);
    auto* byte = const_cast<std::byte*>(lent->result(0).lent.data) + offset;
    *byte ^= std::byte{8};
  }
  auto sink = GetAndWait(*tier, RefsOf(blocks));
  EXPECT_EQ(sink->result(0).outcome, GetOutcome::kCorrupt);
  EXPECT_EQ(sink->result(1).outcome, GetOutcome::kCorrupt);
  EXPECT_EQ(tier->Stats()->corrupt_blocks, 2u);
  EXPECT_NE(metrics.Render().find("pagoda:kv_corrupt_blocks_total{hop=\"ram\"} 2"),
            std::string::npos);
  EXPECT_EQ(CountHeld(*tier, blocks), 0u);
  EXPECT_EQ(PutAndWait(*tier, blocks)[0].outcome, PutOutcome::kStored) << "it may be put again";
  EXPECT_TRUE(tier->CheckIntegrity().ok());
}

TEST(RamTier, R66ItsMetricsMove) {
  Metrics metrics;
  auto tier = Tier(4, &metrics);
  auto blocks = MakeChain(1, 2, kPayload);
  PutAndWait(*tier, blocks);
  PutAndWait(*tier, {Diverge(blocks[0])});
  std::string text = metrics.Render();
  EXPECT_NE(text.find("pagoda:kvstore_bytes{tier=\"ram\"} 8192"), std::string::npos) << text;
  EXPECT_NE(text.find("pagoda:kvstore_blocks{tier=\"ram\"} 2"), std::string::npos);
  EXPECT_NE(text.find("pagoda:kv_divergent_puts_total 1"), std::string::npos);
}

TEST(RamTier, R45OwnersSumToWhatIsUsed) {
  auto tier = Tier(8);
  auto a = MakeChain(1, 2, kPayload), b = MakeChain(2, 3, kPayload);
  for (PutBlock& block : b) block.meta.owner_tenant = "other";
  PutAndWait(*tier, a);
  PutAndWait(*tier, b);
  StoreStats stats = *tier->Stats();
  ASSERT_EQ(stats.owners.size(), 2u);
  EXPECT_EQ(stats.owners[0].tenant, "other");
  EXPECT_EQ(stats.owners[0].blocks, 3u);
  EXPECT_EQ(stats.owners[0].bytes + stats.owners[1].bytes, stats.tiers[0].bytes_used);
}

TEST(RamTier, AnOwnerNameOverItsLimitIsRefused) {
  auto tier = Tier(8);
  auto blocks = MakeChain(1, 1, kPayload);
  blocks[0].meta.owner_tenant.assign(kMaxTenantBytes + 1, 'x');
  EXPECT_EQ(PutAndWait(*tier, blocks)[0].outcome, PutOutcome::kCorrupt);
}

TEST(RamTier, R44ABlockCostsNoMoreIndexThanItSays) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's allocator does not say what is in use";
#endif
  constexpr size_t kBlocks = 20'000;
  auto tier = *RamTier::Create({.bytes = kBlocks * RamTier::kMinBytesPerBlock});
  std::vector<RecordHeader> headers;
  for (uint64_t seed = 0; headers.size() < kBlocks; ++seed) {
    for (PutBlock& block : MakeChain(seed, 5, 1)) headers.push_back(std::move(block.header));
  }
  size_t before = mallinfo2().uordblks;
  for (const RecordHeader& header : headers) {
    ReserveResult room = tier->Reserve(tier->StartCall(), header, {});
    ASSERT_EQ(room.room->Commit(header.payload_crc).outcome, PutOutcome::kStored);
  }
  size_t per_block = (mallinfo2().uordblks - before) / kBlocks;
  EXPECT_LE(per_block, RamTier::kIndexBytesPerBlock);
  EXPECT_GE(per_block, RamTier::kIndexBytesPerBlock / 3) << "the bound says nothing any more";
}

TEST(RamTier, AReportedBlockIsDroppedOnceAndItsReadersKeepTheirBytes) {
  auto tier = *RamTier::Create({.bytes = 1 << 20, .policy = nullptr});
  auto blocks = MakeChain(1, 2, 1000);
  PutAndWait(*tier, blocks);
  auto reader = GetAndWait(*tier, RefsOf(blocks), RecordingSink::Mode::kLend);
  for (int i = 0; i < 2; ++i) tier->ReportCorrupt({blocks[0].header.ref.key, 1, "foreign"});
  EXPECT_FALSE(FindAndWait(*tier, RefsOf(blocks)).blocks[0]);
  EXPECT_EQ(reader->bytes(0), blocks[0].payload.bytes());
  EXPECT_EQ(tier->Stats()->corrupt_blocks, 1u);
  EXPECT_TRUE(tier->CheckIntegrity().ok()) << tier->CheckIntegrity();
}

TEST(RamTier, ThreadsThatReserveReadAndEvictNeverSeeForeignBytes) {
  uint64_t seed = RandomId();
  SCOPED_TRACE("seed " + std::to_string(seed));
  auto tier = Tier(12);  // far fewer than the blocks in play
  std::vector<std::vector<PutBlock>> chains;
  for (uint64_t c = 0; c < 10; ++c) chains.push_back(MakeChain(seed + c, 4, kPayload - c * 100));
  std::atomic<int> found{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, state = seed + 100 * t]() mutable {
      for (int round = 0; round < 300; ++round) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const auto& chain = chains[(state >> 33) % chains.size()];
        switch ((state >> 50) % 4) {
          case 0:
          case 1:
            PutAndWait(*tier, chain);
            break;
          case 2: {
            ReserveResult given_up = tier->Reserve(tier->StartCall(), chain[0].header, {});
            break;
          }
          default: {
            auto mode = state >> 63 ? RecordingSink::Mode::kLend : RecordingSink::Mode::kMemory;
            auto sink = GetAndWait(*tier, RefsOf(chain), mode);
            for (size_t i = 0; i < chain.size(); ++i) {
              if (sink->result(i).outcome != GetOutcome::kFound) continue;
              ++found;
              ASSERT_EQ(sink->bytes(i), chain[i].payload.bytes());
            }
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(found.load(), 0);
  EXPECT_TRUE(tier->CheckIntegrity().ok()) << tier->CheckIntegrity();
  StoreStats stats = *tier->Stats();
  uint64_t owned = 0;
  for (const OwnerStats& owner : stats.owners) owned += owner.bytes;
  EXPECT_EQ(owned, stats.tiers[0].bytes_used) << "no reader and no reservation is left";
}

}  // namespace
}  // namespace pagoda::kvstore
