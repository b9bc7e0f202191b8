#include "services/kvstore/tiered_store.h"

#include <functional>
#include <set>
#include <utility>

#include "common/base/crc32c.h"
#include "common/kv/testing/test_blocks.h"
#include "gtest/gtest.h"
#include "services/kvstore/disk_tier.h"
#include "services/kvstore/testing/temp_folder.h"

namespace pagoda::kvstore {
namespace {

using testing::Diverge;
using testing::FindAndWait;
using testing::GetAndWait;
using testing::MakeChain;
using testing::PutAndWait;
using testing::RecordingSink;
using testing::RefsOf;

constexpr size_t kPayload = 64 << 10;
constexpr size_t kSlot = kPayload + 256;

class TieredStoreTest : public ::testing::Test {
 protected:
  // RAM for four blocks.
  void Open(uint64_t spill_bytes = Spill::kMaxBytes) {
    store_ = nullptr;
    auto disk = *DiskTier::Open({.db = {.folder = folder_.path + "/v1",
                                        .bytes = 64 << 20,
                                        .min_free_bytes = 0,
                                        .metrics = &metrics_}});
    disk_ = disk.get();
    store_ = *TieredStore::Create({.bytes = 4 * kSlot, .metrics = &metrics_}, std::move(disk),
                                  spill_bytes);
  }
  void SetUp() override { Open(); }
  void TearDown() override {
    EXPECT_TRUE(store_->CheckIntegrity().ok());
    EXPECT_TRUE(disk_->CheckIntegrity().ok());
  }
  void Store(const std::vector<PutBlock>& blocks) {
    for (const PutResult& result : PutAndWait(*store_, blocks)) {
      ASSERT_EQ(result.outcome, PutOutcome::kStored) << result.status;
    }
  }
  // Until as many were brought to disk, and wait for it no more.
  void WaitForDisk(uint64_t blocks) {
    std::string line = "kvstore_spills_total{result=\"stored\"} " + std::to_string(blocks);
    TimePoint limit = SystemClock::Get()->Now() + std::chrono::minutes(4);
    while (!Shows(line)) {
      ASSERT_LT(SystemClock::Get()->Now(), limit);
      std::this_thread::yield();
    }
  }
  std::vector<Held> Find(const std::vector<PutBlock>& blocks) {
    return FindAndWait(*store_, RefsOf(blocks)).blocks;
  }
  bool Shows(const std::string& line) {
    return metrics_.Render().find("pagoda:" + line + "\n") != std::string::npos;
  }

  testing::TempFolder folder_;
  Metrics metrics_;
  DiskTier* disk_ = nullptr;
  std::unique_ptr<TieredStore> store_;
};

TEST_F(TieredStoreTest, WhatRamEvictsIsOnDiskAndIsReadFromThere) {
  auto blocks = MakeChain(1, 10, kPayload);
  for (const PutBlock& block : blocks) Store({block});
  WaitForDisk(6);
  int in_ram = 0;
  std::vector<Held> held = Find(blocks);
  for (Held h : held) {
    EXPECT_NE(h.in_ram, h.on_disk);
    in_ram += h.in_ram ? 1 : 0;
  }
  EXPECT_EQ(in_ram, 4);
  auto sink = GetAndWait(*store_, RefsOf(blocks), RecordingSink::Mode::kLend);
  ASSERT_TRUE(sink->EachDoneOnce());
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(sink->result(i).outcome, GetOutcome::kFound);
    EXPECT_EQ(sink->result(i).tier, held[i].in_ram ? Tier::kRam : Tier::kDisk);
    EXPECT_EQ(sink->bytes(i), blocks[i].payload.bytes());
  }
  EXPECT_TRUE(Shows("kvstore_spills_total{result=\"stored\"} 6"));
}

TEST_F(TieredStoreTest, WhatIsReadFromDiskIsPromotedWithItsOwner) {
  auto blocks = MakeChain(1, 5, kPayload);
  for (PutBlock& block : blocks) block.meta.owner_tenant = "acme";
  for (const PutBlock& block : blocks) Store({block});
  WaitForDisk(1);
  std::vector<Held> held = Find(blocks);
  size_t on_disk = 0;
  while (!held[on_disk].on_disk) ++on_disk;
  EXPECT_EQ(GetAndWait(*store_, {blocks[on_disk].header.ref})->result(0).tier, Tier::kDisk);
  EXPECT_EQ(Find(blocks)[on_disk], (Held{true, true}));
  auto again = GetAndWait(*store_, {blocks[on_disk].header.ref});
  EXPECT_EQ(again->result(0).tier, Tier::kRam);
  EXPECT_EQ(again->bytes(0), blocks[on_disk].payload.bytes());
  EXPECT_EQ(store_->Stats()->owners.size(), 1u);
  EXPECT_EQ(store_->Stats()->owners[0].tenant, "acme");
}

TEST_F(TieredStoreTest, R45OwnersSumToTheBytesOfBothTiers) {
  auto a = MakeChain(1, 4, kPayload), b = MakeChain(2, 4, kPayload);
  for (PutBlock& block : b) block.meta.owner_tenant = "other";
  for (const auto& chain : {a, b}) {
    for (const PutBlock& block : chain) Store({block});
  }
  WaitForDisk(4);
  GetAndWait(*store_, RefsOf(a));  // some are in both tiers now
  ASSERT_EQ(store_->Stats()->tiers.size(), 2u);
  uint64_t owned = 0, used = 0;
  // Spills may still be moving; both sums must meet once they have ended.
  TimePoint limit = SystemClock::Get()->Now() + std::chrono::minutes(4);
  do {
    StoreStats stats = *store_->Stats();
    owned = used = 0;
    for (const OwnerStats& owner : stats.owners) owned += owner.bytes;
    for (const TierStats& tier : stats.tiers) used += tier.bytes_used;
  } while (owned != used && SystemClock::Get()->Now() < limit);
  EXPECT_EQ(owned, used);
}

TEST_F(TieredStoreTest, ABlockOnDiskIsHeldAlreadyAndOtherBytesDiverge) {
  auto blocks = MakeChain(1, 5, kPayload);
  for (const PutBlock& block : blocks) Store({block});
  WaitForDisk(1);
  std::vector<Held> held = Find(blocks);
  size_t i = 0;
  while (!held[i].on_disk) ++i;
  EXPECT_EQ(PutAndWait(*store_, {blocks[i]})[0].outcome, PutOutcome::kHave);
  EXPECT_EQ(PutAndWait(*store_, {Diverge(blocks[i])})[0].outcome, PutOutcome::kDivergent);
  EXPECT_EQ(store_->Reserve(store_->StartCall(), Diverge(blocks[i]).header, {}).refusal.outcome,
            PutOutcome::kDivergent);
  EXPECT_EQ(store_->Stats()->divergent_puts, 2u);
  EXPECT_TRUE(Shows("kv_divergent_puts_total 2"));
  EXPECT_EQ(GetAndWait(*store_, {blocks[i].header.ref})->bytes(0), blocks[i].payload.bytes());
}

TEST_F(TieredStoreTest, R70AfterACleanStopEverythingIsOnDisk) {
  auto blocks = MakeChain(1, 6, kPayload);
  for (const PutBlock& block : blocks) Store({block});
  store_->SpillAll(SystemClock::Get()->Now() + std::chrono::minutes(4));
  Open();
  auto sink = GetAndWait(*store_, RefsOf(blocks));
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(sink->result(i).outcome, GetOutcome::kFound) << i;
    EXPECT_EQ(sink->bytes(i), blocks[i].payload.bytes());
  }
}

TEST_F(TieredStoreTest, AStoppedDiskIsAMissAndPutsGoOn) {
  auto blocks = MakeChain(1, 6, kPayload);
  for (const PutBlock& block : blocks) Store({block});
  WaitForDisk(2);
  disk_->Stop();
  auto sink = GetAndWait(*store_, RefsOf(blocks));
  ASSERT_TRUE(sink->EachDoneOnce());
  int found = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    found += sink->result(i).outcome == GetOutcome::kFound;
    EXPECT_NE(sink->result(i).outcome, GetOutcome::kFailed);
  }
  EXPECT_EQ(found, 4);
  for (const PutBlock& block : MakeChain(2, 6, kPayload)) Store({block});
  EXPECT_TRUE(Shows("kvstore_spills_total{result=\"failed\"} 6"));
}

// A tier below whose writes wait until they are told to go on.
class FrozenTier final : public LowerTier {
 public:
  ~FrozenTier() override { Thaw(); }
  void Thaw() {
    for (Write& write : std::exchange(waiting_, {})) {
      bool called_off = !CheckCall(write.context, 1, SystemClock::Get()->Now()).ok();
      if (!called_off) held_.insert(KeyOf(write.block));
      write.done({{called_off ? PutOutcome::kFailed : PutOutcome::kStored, 0, absl::OkStatus()}});
    }
  }
  // Writes that wait, in their order.
  std::vector<PutBlock> Waiting() const {
    std::vector<PutBlock> blocks;
    for (const Write& write : waiting_) blocks.push_back(write.block);
    return blocks;
  }
  // The writes have begun: it is too late to call them off.
  void BeginWrites() {
    for (Write& write : waiting_) write.context = {};
  }
  size_t size() const { return held_.size(); }

  ManualClock* clock = nullptr;  // each write takes a second of it

  void FindMissing(const CallContext&, std::vector<BlockRef> refs, FindCallback done) override {
    done({absl::OkStatus(), std::vector<Held>(refs.size())});
  }
  void Get(const CallContext&, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) override {
    FailGet(absl::UnavailableError("frozen"), refs.size(), *sink);
  }
  void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) override {
    waiting_.push_back({context, std::move(blocks[0]), std::move(done)});
    if (clock != nullptr) clock->Advance(std::chrono::seconds(1));
  }
  void ReportCorrupt(const CorruptReport& report) override { held_.erase(report.key); }
  std::optional<IndexedBlock> Lookup(const BlockKey&) const override { return std::nullopt; }
  StatusOr<StoreStats> Stats() override { return StoreStats{}; }

 private:
  struct Write {
    CallContext context;
    PutBlock block;
    PutCallback done;
  };
  static BlockKey KeyOf(const PutBlock& block) { return block.header.ref.key; }

  std::vector<Write> waiting_;
  std::set<BlockKey> held_;
};

TEST_F(TieredStoreTest, ASpillThatIsFullDropsBlocksAndNoPutWaits) {
  Metrics metrics;
  auto store = *TieredStore::Create({.bytes = 4 * kSlot, .metrics = &metrics},
                                    std::make_unique<FrozenTier>(), 2 * kPayload);
  auto blocks = MakeChain(1, 12, kPayload);  // 8 are evicted, 2 may wait
  for (const PutBlock& block : blocks) {
    EXPECT_EQ(PutAndWait(*store, {block})[0].outcome, PutOutcome::kStored);
  }
  EXPECT_NE(metrics.Render().find("pagoda:kvstore_spills_total{result=\"dropped\"} 6"),
            std::string::npos);
  // What waits is known: other bytes diverge, though neither tier holds the block.
  int have = 0, divergent = 0;
  for (const PutBlock& block : blocks) {
    have +=
        store->Reserve(store->StartCall(), block.header, {}).refusal.outcome == PutOutcome::kHave;
    divergent += store->Reserve(store->StartCall(), Diverge(block).header, {}).refusal.outcome ==
                 PutOutcome::kDivergent;
  }
  EXPECT_GE(divergent, 2);
  EXPECT_GE(have, 2);
  store->SpillAll(SystemClock::Get()->Now() + std::chrono::milliseconds(50));  // is bounded
}

class SpillAllTest : public ::testing::Test {
 protected:
  // The depths of ten blocks of one chain in the order in which they were written within `limit`.
  std::vector<uint32_t> DepthsWritten(Duration limit) {
    ManualClock clock;
    auto tier = std::make_unique<FrozenTier>();
    FrozenTier& below = *tier;
    below.clock = &clock;
    auto store = *TieredStore::Create({.bytes = 10 * kSlot, .clock = &clock}, std::move(tier));
    PutAndWait(*store, MakeChain(1, 10, kPayload));
    store->SpillAll(clock.Now() + limit);
    std::vector<uint32_t> depths;
    for (const PutBlock& block : below.Waiting()) depths.push_back(block.header.ref.depth);
    return depths;
  }
};

TEST_F(SpillAllTest, WhatGoesFirstIsWrittenFirstSoThatTheDiskKeepsTheOrder) {
  EXPECT_EQ(DepthsWritten(std::chrono::seconds(100)),
            (std::vector<uint32_t>{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}));
}

TEST_F(SpillAllTest, OfMoreThanTheTimeAllowsTheYoungestAreWritten) {
  // The first shows that each takes a second.
  EXPECT_EQ(DepthsWritten(std::chrono::seconds(4)), (std::vector<uint32_t>{9, 2, 1, 0}));
}

class WaitingBlockTest : public ::testing::Test {
 protected:
  // RAM for four blocks; the fifth makes one wait.
  void SetUp() override {
    auto frozen = std::make_unique<FrozenTier>();
    below_ = frozen.get();
    store_ = *TieredStore::Create({.bytes = 4 * kSlot, .metrics = &metrics_}, std::move(frozen));
    for (const PutBlock& block : MakeChain(1, 5, kPayload)) PutAndWait(*store_, {block});
    ASSERT_EQ(below_->Waiting().size(), 1u);
    block_ = below_->Waiting()[0];
  }
  BlockRef ref() const { return block_.header.ref; }
  void Report() { store_->ReportCorrupt({ref().key, 0, "does not fit"}); }
  Held Find() { return FindAndWait(*store_, {ref()}).blocks[0]; }
  GetResult Get(RecordingSink::Mode mode = RecordingSink::Mode::kMemory) {
    return GetAndWait(*store_, {ref()}, mode)->result(0);
  }

  Metrics metrics_;
  FrozenTier* below_ = nullptr;
  std::unique_ptr<TieredStore> store_;
  PutBlock block_;
};

TEST_F(WaitingBlockTest, IsFoundAndReadAndComesBackToRam) {
  EXPECT_EQ(Find(), (Held{true, false}));
  auto sink = GetAndWait(*store_, {ref()});
  EXPECT_EQ(sink->result(0).outcome, GetOutcome::kFound);
  EXPECT_EQ(sink->result(0).tier, Tier::kRam);
  EXPECT_EQ(sink->bytes(0), block_.payload.bytes());
  below_->Thaw();
  EXPECT_EQ(Get().outcome, GetOutcome::kFound);  // in RAM: the tier below answers nothing
}

TEST_F(WaitingBlockTest, IsLentAndLivesAsLongAsItsReader) {
  auto sink = GetAndWait(*store_, {ref()}, RecordingSink::Mode::kLend);
  below_->Thaw();
  store_ = nullptr;
  EXPECT_EQ(sink->result(0).outcome, GetOutcome::kFound);
  EXPECT_EQ(sink->bytes(0), block_.payload.bytes());
}

TEST_F(WaitingBlockTest, R13OnceReportedNeverReachesTheDisk) {
  Report();
  EXPECT_FALSE(Find());
  EXPECT_EQ(Get().outcome, GetOutcome::kMissing);
  below_->Thaw();
  EXPECT_EQ(below_->size(), 0u);
  EXPECT_EQ(store_->Stats()->corrupt_blocks, 1u);
}

TEST_F(WaitingBlockTest, R13ReportedWhileItIsWrittenIsDroppedFromTheDisk) {
  below_->BeginWrites();
  Report();
  below_->Thaw();
  EXPECT_EQ(below_->size(), 0u);
}

TEST_F(WaitingBlockTest, WhoseBytesChangedIsCorruptAndNeverReachesTheDisk) {
  const_cast<std::byte&>(block_.payload.data[7]) ^= std::byte{1};
  EXPECT_EQ(Get().outcome, GetOutcome::kCorrupt);
  EXPECT_EQ(Get().outcome, GetOutcome::kMissing);
  below_->Thaw();
  EXPECT_EQ(below_->size(), 0u);
  EXPECT_EQ(store_->Stats()->corrupt_blocks, 1u);
}

TEST_F(WaitingBlockTest, ThatWasReportedMayBePutAndSpilledAnew) {
  Report();
  EXPECT_EQ(PutAndWait(*store_, {MakeChain(1, 5, kPayload)[ref().depth]})[0].outcome,
            PutOutcome::kStored);
  for (const PutBlock& block : MakeChain(2, 4, kPayload)) PutAndWait(*store_, {block});
  ASSERT_EQ(below_->Waiting().size(), 6u);
  below_->Thaw();
  EXPECT_EQ(below_->size(), 5u);  // all of chain 1
  EXPECT_EQ(store_->Stats()->corrupt_blocks, 1u);
}

}  // namespace
}  // namespace pagoda::kvstore
