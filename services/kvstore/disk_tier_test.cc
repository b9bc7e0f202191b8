#include "services/kvstore/disk_tier.h"

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>

#include "common/base/random.h"
#include "common/kv/testing/test_blocks.h"
#include "gtest/gtest.h"
#include "services/kvstore/testing/failing_env.h"
#include "services/kvstore/testing/temp_folder.h"

namespace pagoda::kvstore {
namespace {

namespace fs = std::filesystem;
using testing::Diverge;
using testing::FindAndWait;
using testing::GetAndWait;
using testing::MakeChain;
using testing::PutAndWait;
using testing::RecordingSink;
using testing::RefsOf;

constexpr size_t kPayload = 64 << 10;
// Beside the payload: two keys of 9 bytes, the header, the meta of the tenant "tenant".
constexpr size_t kBlock = kPayload + 2 * 9 + 200 + 44 + 6;

class DiskTierTest : public ::testing::Test {
 protected:
  void Open(uint64_t blocks = 64) {
    tier_ = nullptr;
    options_.db.folder = folder_.path + "/v1";
    options_.db.bytes = blocks * kBlock;
    options_.db.min_free_bytes = 0;
    options_.db.metrics = &metrics_;
    tier_ = *DiskTier::Open(options_);
  }
  void TearDown() override {
    if (tier_ == nullptr) return;
    EXPECT_TRUE(tier_->CheckIntegrity().ok()) << tier_->CheckIntegrity();
  }
  void Store(const std::vector<PutBlock>& blocks) {
    for (const PutResult& result : PutAndWait(*tier_, blocks)) {
      ASSERT_EQ(result.outcome, PutOutcome::kStored) << result.status;
    }
  }
  void ExpectExact(const std::vector<PutBlock>& blocks) {
    auto sink = GetAndWait(*tier_, RefsOf(blocks));
    for (size_t i = 0; i < blocks.size(); ++i) {
      ASSERT_EQ(sink->result(i).outcome, GetOutcome::kFound) << i << sink->result(i).status;
      EXPECT_EQ(sink->result(i).tier, Tier::kDisk);
      EXPECT_EQ(sink->header(i), blocks[i].header);
      EXPECT_EQ(sink->bytes(i), blocks[i].payload.bytes());
    }
  }
  size_t CountHeld(const std::vector<PutBlock>& blocks) {
    size_t held = 0;
    for (Held h : FindAndWait(*tier_, RefsOf(blocks)).blocks) held += h.on_disk ? 1 : 0;
    return held;
  }
  TierStats Stats() { return tier_->Stats()->tiers[0]; }
  bool Shows(const std::string& line) {
    return metrics_.Render().find("pagoda:" + line + "\n") != std::string::npos;
  }

  // Runs a test of this program in a process of its own, on this test's folder, until it kills
  // itself. A plain fork would miss the threads of RocksDB.
  void RunUntilKilled(const std::string& test) {
    pid_t child = fork();
    if (child == 0) {
      setenv("PAGODA_TEST_DISK_FOLDER", folder_.path.c_str(), 1);
      std::string filter = "--gtest_filter=DiskTierTest." + test;
      execl("/proc/self/exe", "disk_tier_test", "--gtest_also_run_disabled_tests", filter.c_str(),
            nullptr);
      _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
  }
  // In such a process: true, and the folder is the other's.
  bool IsKilledOne() {
    const char* folder = std::getenv("PAGODA_TEST_DISK_FOLDER");
    if (folder == nullptr) return false;
    fs::remove_all(folder_.path);
    folder_.path = folder;
    return true;
  }

  testing::TempFolder folder_;
  Metrics metrics_;
  std::atomic<bool> failing_{false};
  const std::unique_ptr<rocksdb::Env> failing_env_ = testing::MakeFailingEnv(failing_);
  ManualClock clock_;
  DiskTier::Options options_;
  std::unique_ptr<DiskTier> tier_;
};

TEST_F(DiskTierTest, TheOldestGoFirst) {
  Open(4);
  auto blocks = MakeChain(1, 6, kPayload);
  Store(blocks);
  auto held = FindAndWait(*tier_, RefsOf(blocks)).blocks;
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(held[i].on_disk, i >= 2) << i;
  EXPECT_EQ(Stats().evicted_blocks, 2u);
  EXPECT_EQ(Stats().bytes_used, 4 * kBlock);
  EXPECT_TRUE(Shows("kvstore_blocks{tier=\"disk\"} 4"));
  EXPECT_TRUE(Shows("kvstore_bytes{tier=\"disk\"} " + std::to_string(4 * kBlock)));
}

TEST_F(DiskTierTest, R46ItNeverHoldsMoreThanItsLimitWhateverComes) {
  Open(8);
  uint64_t seed = RandomId();
  SCOPED_TRACE("seed " + std::to_string(seed));
  uint64_t state = seed;
  std::vector<std::pair<PutBlock, size_t>> put;  // oldest first, with what each must count
  for (int round = 0; round < 200; ++round) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    size_t bytes = 1 + (state >> 33) % (3 * kPayload);
    PutBlock block = MakeChain(seed + static_cast<uint64_t>(round), 1, bytes)[0];
    ASSERT_EQ(PutAndWait(*tier_, {block})[0].outcome, PutOutcome::kStored);
    put.emplace_back(block, bytes + kBlock - kPayload);
    ASSERT_LE(Stats().bytes_used, 8 * kBlock);
    // What must be held: the youngest that fit, by size and by number.
    uint64_t sum = 0, count = 0;
    for (auto it = put.rbegin(); it != put.rend(); ++it, ++count) {
      if (sum + it->second > 8 * kBlock || count == 8 * kBlock / (64 << 10)) break;
      sum += it->second;
      ASSERT_TRUE(tier_->Lookup(it->first.header.ref.key)) << count;
    }
    ASSERT_EQ(Stats().bytes_used, sum);
    ASSERT_EQ(Stats().blocks, count);
  }
  EXPECT_TRUE(Shows("kvstore_blocks{tier=\"disk\"} " + std::to_string(Stats().blocks)));
}

TEST_F(DiskTierTest, ABlockLargerThanTheTierIsRefusedAndNothingGoes) {
  Open(2);
  auto small = MakeChain(1, 2, kPayload);
  Store(small);
  EXPECT_EQ(PutAndWait(*tier_, MakeChain(2, 1, 3 * kPayload))[0].outcome, PutOutcome::kNoRoom);
  EXPECT_EQ(CountHeld(small), 2u);
}

TEST_F(DiskTierTest, R70ARestartFindsItsBlocksTheirOwnersAndTheirMeta) {
  Open();
  auto a = MakeChain(1, 3, kPayload), b = MakeChain(2, 5, 100);
  for (PutBlock& block : b) {
    block.meta = {.owner_tenant = "other",
                  .tenant_generation = 3,
                  .weight_epoch = 4,
                  .priority = -2,
                  .expires_unix_ms = 99,
                  .last_use_unix_ms = 7};
  }
  Store(a);
  Store(b);
  StoreStats before = *tier_->Stats();
  Open();
  ExpectExact(a);
  ExpectExact(b);
  StoreStats after = *tier_->Stats();
  EXPECT_EQ(after.tiers[0].bytes_used, before.tiers[0].bytes_used);
  ASSERT_EQ(after.owners.size(), 2u);
  EXPECT_EQ(after.owners[0].tenant, "other");
  EXPECT_EQ(after.owners[0].blocks, 5u);
  EXPECT_EQ(after.owners[1].bytes, 3 * kBlock);
  EXPECT_EQ(tier_->Lookup(b[4].header.ref.key)->meta, b[4].meta);
}

TEST_F(DiskTierTest, ASmallerLimitAtTheNextStartDropsTheOldest) {
  Open(8);
  auto blocks = MakeChain(1, 8, kPayload);
  Store(blocks);
  Open(3);
  auto held = FindAndWait(*tier_, RefsOf(blocks)).blocks;
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(held[i].on_disk, i >= 5) << i;
  Store(MakeChain(2, 1, kPayload));
  EXPECT_EQ(Stats().bytes_used, 3 * kBlock);
}

TEST_F(DiskTierTest, DISABLED_StoresFlushesStoresAndKillsItself) {
  if (!IsKilledOne()) GTEST_SKIP() << "only a part of the next test";
  options_.flush_interval = std::chrono::hours(1);
  Open(32);
  Store(MakeChain(1, 10, kPayload));
  Open(32);                           // the first are flushed
  Store(MakeChain(2, 30, kPayload));  // makes 8 of them go
  raise(SIGKILL);
}

TEST_F(DiskTierTest, R70AKillLosesOnlyWhatWasNotFlushed) {
  RunUntilKilled("DISABLED_StoresFlushesStoresAndKillsItself");
  auto flushed = MakeChain(1, 10, kPayload), later = MakeChain(2, 30, kPayload);
  Open(32);
  ASSERT_TRUE(tier_->CheckIntegrity().ok());
  auto held = FindAndWait(*tier_, RefsOf(flushed)).blocks;
  size_t missing = 0;
  for (Held h : held) missing += h ? 0 : 1;
  // A full buffer is flushed by itself: then what made way is really gone.
  if (missing == 0) ExpectExact(flushed);
  auto sink = GetAndWait(*tier_, RefsOf(later));
  size_t found = 0;
  for (size_t i = 0; i < later.size(); ++i) {
    if (sink->result(i).outcome == GetOutcome::kMissing) continue;
    ASSERT_EQ(sink->result(i).outcome, GetOutcome::kFound);
    ASSERT_EQ(sink->bytes(i), later[i].payload.bytes());
    ++found;
  }
  EXPECT_LE(missing, found) << "a block went for one that is not there";
}

TEST_F(DiskTierTest, WhatWaitsIsFlushedByTime) {
  options_.flush_interval = std::chrono::milliseconds(1);
  Open();
  Store(MakeChain(1, 1, kPayload));
  auto has_blob = [&] {
    for (const auto& entry : fs::directory_iterator(options_.db.folder)) {
      if (entry.path().extension() == ".blob" && fs::file_size(entry) > kPayload) return true;
    }
    return false;
  };
  TimePoint limit = SystemClock::Get()->Now() + std::chrono::minutes(4);
  while (!has_blob() && SystemClock::Get()->Now() < limit) std::this_thread::yield();
  EXPECT_TRUE(has_blob());
}

// Flips a byte of the payload in the files.
void FlipInFiles(const std::string& folder, std::string_view payload) {
  int flipped = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".blob") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    size_t at = bytes.find(payload);
    if (at == std::string::npos) continue;
    std::fstream out(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(at + payload.size() / 2));
    out.put(static_cast<char>(payload[payload.size() / 2] ^ 1));
    ++flipped;
  }
  ASSERT_EQ(flipped, 1);
}

TEST_F(DiskTierTest, R13AFlippedByteIsFoundQuarantinedAndNeverComesBack) {
  Open();
  auto blocks = MakeChain(1, 3, kPayload);
  Store(blocks);
  tier_ = nullptr;
  FlipInFiles(options_.db.folder, blocks[1].payload.bytes());
  Open();
  for (auto mode : {RecordingSink::Mode::kMemory, RecordingSink::Mode::kLend}) {
    auto sink = GetAndWait(*tier_, RefsOf(blocks), mode);
    bool first = mode == RecordingSink::Mode::kMemory;
    EXPECT_EQ(sink->result(0).outcome, GetOutcome::kFound);
    EXPECT_EQ(sink->result(1).outcome, first ? GetOutcome::kCorrupt : GetOutcome::kMissing);
    EXPECT_EQ(sink->result(1).lent.size, 0u);
    EXPECT_EQ(sink->result(2).outcome, GetOutcome::kFound);
  }
  EXPECT_EQ(tier_->Stats()->corrupt_blocks, 1u);
  EXPECT_TRUE(Shows("kv_corrupt_blocks_total{hop=\"disk\"} 1"));
  Open();
  EXPECT_EQ(CountHeld(blocks), 2u);
  EXPECT_EQ(PutAndWait(*tier_, {blocks[1]})[0].outcome, PutOutcome::kStored);
  ExpectExact(blocks);
}

TEST_F(DiskTierTest, DISABLED_ReadsACorruptBlockAndKillsItself) {
  if (!IsKilledOne()) GTEST_SKIP() << "only a part of the next test";
  Open();
  auto sink = GetAndWait(*tier_, RefsOf(MakeChain(1, 2, kPayload)));
  ASSERT_EQ(sink->result(0).outcome, GetOutcome::kCorrupt);
  raise(SIGKILL);
}

TEST_F(DiskTierTest, AQuarantinedBlockStaysAwayAfterAKill) {
  Open();
  auto blocks = MakeChain(1, 2, kPayload);
  Store(blocks);
  tier_ = nullptr;
  FlipInFiles(options_.db.folder, blocks[0].payload.bytes());
  RunUntilKilled("DISABLED_ReadsACorruptBlockAndKillsItself");
  Open();
  EXPECT_EQ(CountHeld({blocks[0]}), 0u);
  EXPECT_EQ(CountHeld({blocks[1]}), 1u);
}

TEST_F(DiskTierTest, ADatabaseWithoutOneOfItsFilesIsDataLoss) {
  Open();
  Store(MakeChain(1, 1, kPayload));
  tier_ = nullptr;
  std::ofstream(options_.db.folder + "/CURRENT") << "MANIFEST-999999\n";
  EXPECT_TRUE(absl::IsDataLoss(DiskTier::Open(options_).status()));
  fs::remove(options_.db.folder + "/CURRENT");
  auto created = DiskTier::Open(options_);  // a new one beside the rest of the old
  EXPECT_TRUE(created.ok() || absl::IsDataLoss(created.status())) << created.status();
}

TEST_F(DiskTierTest, ADiskThatIsFullIsLeftAloneShownAndComesBack) {
  options_.db.env = failing_env_.get();
  options_.db.clock = &clock_;
  Open(64);  // buffers of 1 MiB: a flush comes after 16 blocks
  auto before = MakeChain(1, 4, kPayload);
  Store(before);
  EXPECT_TRUE(Shows("kvstore_disk_up 1"));
  failing_ = true;
  bool failed = false;
  for (uint64_t seed = 100; seed < 300 && !failed; ++seed) {
    failed = PutAndWait(*tier_, MakeChain(seed, 1, kPayload))[0].outcome == PutOutcome::kFailed;
  }
  ASSERT_TRUE(failed);
  EXPECT_TRUE(Shows("kvstore_disk_up 0"));
  EXPECT_FALSE(Shows("kvstore_disk_errors_total{op=\"write\"} 0"));
  failing_ = false;
  EXPECT_EQ(PutAndWait(*tier_, MakeChain(400, 1, kPayload))[0].outcome, PutOutcome::kFailed)
      << "not asked again so soon";
  auto after = MakeChain(401, 2, kPayload);
  // RocksDB looks every few seconds whether there is room again.
  TimePoint limit = SystemClock::Get()->Now() + std::chrono::minutes(4);
  while (!Shows("kvstore_disk_up 1") && SystemClock::Get()->Now() < limit) {
    clock_.Advance(options_.db.retry_after);
    PutAndWait(*tier_, after);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(Shows("kvstore_disk_up 1"));
  ExpectExact(after);
}

TEST_F(DiskTierTest, AFileSystemThatIsNearlyFullTakesNothingMore) {
  Open();
  auto before = MakeChain(1, 2, kPayload);
  Store(before);
  tier_ = nullptr;
  options_.db.folder = folder_.path + "/v1";
  options_.db.min_free_bytes = uint64_t{1} << 60;
  tier_ = *DiskTier::Open(options_);
  EXPECT_EQ(PutAndWait(*tier_, MakeChain(2, 1, kPayload))[0].outcome, PutOutcome::kFailed);
  EXPECT_TRUE(Shows("kvstore_disk_up 0"));
  ExpectExact(before);
}

TEST_F(DiskTierTest, ABlockWhoseFileIsGoneIsForgotten) {
  Open();
  auto blocks = MakeChain(1, 2, kPayload);
  Store(blocks);
  tier_ = nullptr;
  Open();
  for (const auto& entry : fs::directory_iterator(options_.db.folder)) {
    if (entry.path().extension() == ".blob") fs::resize_file(entry, 0);
  }
  auto sink = GetAndWait(*tier_, RefsOf(blocks));
  EXPECT_TRUE(sink->EachDoneOnce());
  for (size_t i = 0; i < 2; ++i) EXPECT_NE(sink->result(i).outcome, GetOutcome::kFound);
  EXPECT_EQ(CountHeld(blocks), 0u);
}

TEST_F(DiskTierTest, ABlockThatCannotBeReadIsForgotten) {
  Open();
  auto blocks = MakeChain(1, 1, kPayload);
  Store(blocks);
  tier_ = nullptr;
  Open();
  for (const auto& entry : fs::directory_iterator(options_.db.folder)) {
    if (entry.path().extension() == ".blob") fs::remove(entry);
  }
  EXPECT_EQ(GetAndWait(*tier_, RefsOf(blocks))->result(0).outcome, GetOutcome::kFailed);
  EXPECT_EQ(CountHeld(blocks), 0u);
  EXPECT_TRUE(Shows("kvstore_disk_errors_total{op=\"read\"} 1"));
}

TEST_F(DiskTierTest, ABlockThatWasForgottenAndStoredAgainIsFoundOnceAfterARestart) {
  Open();
  auto blocks = MakeChain(1, 2, kPayload);
  Store(blocks);
  tier_ = nullptr;
  Open();
  // The file of both is out of reach for one read of the first, which is then stored again.
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(options_.db.folder)) {
    if (entry.path().extension() == ".blob") files.push_back(entry.path());
  }
  ASSERT_FALSE(files.empty());
  for (const fs::path& file : files) fs::rename(file, file.string() + ".away");
  EXPECT_EQ(GetAndWait(*tier_, RefsOf({blocks[0]}))->result(0).outcome, GetOutcome::kFailed);
  for (const fs::path& file : files) fs::rename(file.string() + ".away", file);
  EXPECT_EQ(PutAndWait(*tier_, {blocks[0]})[0].outcome, PutOutcome::kStored);
  Open();
  ExpectExact(blocks);
  EXPECT_EQ(Stats().blocks, 2u);
  EXPECT_EQ(Stats().bytes_used, 2 * kBlock);
  Store(MakeChain(2, 1, kPayload));
  Open();
  EXPECT_EQ(Stats().blocks, 3u);
}

TEST_F(DiskTierTest, OfABlockThatIsOnDiskTwiceTheYoungerIsKept) {
  Open();
  auto blocks = MakeChain(1, 2, kPayload);
  Store(blocks);
  tier_ = nullptr;
  // What a failed deletion and another put leave: the first block as 1 and as 9, wrong as 1.
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open({}, options_.db.folder, &opened).ok());
  std::unique_ptr<rocksdb::DB> db(opened);
  const std::string zeros(7, '\0');
  for (const std::string& kind : {"i" + zeros, "v" + zeros}) {
    std::string value;
    ASSERT_TRUE(db->Get({}, kind + '\1', &value).ok());
    ASSERT_TRUE(db->Put({}, kind + '\x9', value).ok());
  }
  ASSERT_TRUE(db->Put({}, "v" + zeros + '\1', "wrong").ok());
  db = nullptr;
  for (int restart = 0; restart < 2; ++restart) {
    Open();
    ExpectExact(blocks);
    EXPECT_EQ(Stats().blocks, 2u);
    EXPECT_EQ(Stats().bytes_used, 2 * kBlock);
  }
}

TEST_F(DiskTierTest, AfterStopEveryCallIsAnsweredAtOnce) {
  Open();
  auto blocks = MakeChain(1, 2, kPayload);
  Store(blocks);
  tier_->Stop();
  EXPECT_EQ(GetAndWait(*tier_, RefsOf(blocks))->result(1).outcome, GetOutcome::kFailed);
  EXPECT_EQ(PutAndWait(*tier_, blocks)[0].outcome, PutOutcome::kFailed);
  EXPECT_EQ(CountHeld(blocks), 2u);
}

TEST_F(DiskTierTest, AFullQueueFailsTheCallInsteadOfWaiting) {
  options_.write_queue = 1;
  Open();
  std::promise<void> let_go;
  std::promise<void> running;
  // Holds the writing thread in its callback.
  tier_->Put({}, MakeChain(1, 1, 10), [&](std::vector<PutResult>) {
    running.set_value();
    let_go.get_future().wait();
  });
  running.get_future().wait();
  auto waiting = std::make_shared<std::promise<void>>();
  tier_->Put({}, MakeChain(2, 1, 10), [waiting](std::vector<PutResult>) { waiting->set_value(); });
  PutResult refused = PutAndWait(*tier_, MakeChain(3, 1, 10))[0];
  EXPECT_EQ(refused.outcome, PutOutcome::kFailed);
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kResourceExhausted);
  let_go.set_value();
  waiting->get_future().wait();
}

}  // namespace
}  // namespace pagoda::kvstore
