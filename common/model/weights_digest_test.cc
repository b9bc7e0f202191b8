#include "common/model/weights_digest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/base/bytes.h"
#include "common/model/digest_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace pagoda::model {
namespace {

std::string Hex(const Digest256& digest) { return ToHex(AsBytes(digest)); }

// The expected digests here were computed with Python's hashlib from the definition.
TEST(WeightsDigestTest, ContentIsHashedInChunksOf64MiB) {
  EXPECT_EQ(Hex(ContentDigest("", 2)),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(ContentDigest("abc", 2)),
            "4f8b42c22dd3729b519ba6f68d2da7cc5b2d606d05daed5ad5128cc03e6c6358");
  std::string big((size_t{64} << 20) + 1, 'x');
  for (size_t i = 0; i + 1 < big.size(); ++i) big[i] = static_cast<char>((i % 256) * 7);
  for (int threads : {1, 3}) {
    EXPECT_EQ(Hex(ContentDigest(big, threads)),
              "d8fc5ecd065464a0527ba5bc2080a7f076afae73f3b9ff4d0b3bb2d00ac7bfb3");
  }
}

TEST(WeightsDigestTest, WeightsAreNamedByFilesAndConfig) {
  const std::string config = "a=1\nb=2\n";
  EXPECT_EQ(Hex(WeightsDigest({{"", ContentDigest("abc", 1)}}, config)),
            "6a0cf7bd99059a6944fff10233cf67651fec3ba3f50fbb98f7c993f9a287be13");
  EXPECT_EQ(Hex(WeightsDigest(
                {{"b.gguf", ContentDigest("abc", 1)}, {"a.gguf", ContentDigest("", 1)}}, config)),
            "478ea1a08c73d222c85e0f08d54b3201feaea373d23495e9440d649b0869375e");
  EXPECT_EQ(WeightsDigest({{"a", ContentDigest("1", 1)}, {"b", ContentDigest("2", 1)}}, config),
            WeightsDigest({{"b", ContentDigest("2", 1)}, {"a", ContentDigest("1", 1)}}, config));
}

// The vectors of common/kv, which say how a weights digest enters a block's key.
TEST(WeightsDigestTest, MatchesTheVectorsOfTheBlockIdentity) {
  std::ifstream file(PAGODA_KV_VECTORS);
  auto vectors = nlohmann::json::parse(file);
  ASSERT_FALSE(vectors.empty());
  for (const auto& vector : vectors) {
    std::vector<ModelFileDigest> files;
    for (const auto& f : vector["files"]) {
      files.push_back({f["name"], ContentDigest(f["text"].get<std::string>(), 1)});
    }
    EXPECT_EQ(Hex(WeightsDigest(files, vector["config"].get<std::string>())),
              vector["weights_digest"]);
  }
}

class DigestCacheTest : public ::testing::Test {
 protected:
  DigestCacheTest() {
    std::string pattern = ::testing::TempDir() + "digest_cache_XXXXXX";
    root_ = mkdtemp(pattern.data());
    Write("model", "abc");
  }
  ~DigestCacheTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(root_ + "/" + name) << text;
  }
  MappedFile Open() { return MappedFile::Open(root_ + "/model").value(); }
  // A clock that reads `later` after the file's last change.
  static void SetTo(ManualClock& clock, const FileStamp& stamp, Duration later) {
    const std::chrono::nanoseconds changed(std::max(stamp.mtime_ns, stamp.ctime_ns));
    clock.Advance(changed + later - clock.WallTime());
  }

  std::string root_;
};

TEST_F(DigestCacheTest, RemembersAFileAndForgetsItWhenAnyPartOfItsStampChanges) {
  ManualClock clock;
  MappedFile file = Open();
  SetTo(clock, file.stamp(), std::chrono::seconds(3));
  DigestCache cache(root_ + "/cache/digests", &clock);
  EXPECT_EQ(cache.Find(file.stamp()), std::nullopt);
  EXPECT_EQ(cache.ContentDigestOf(file, 1).value(), ContentDigest("abc", 1));
  EXPECT_EQ(cache.Find(file.stamp()), ContentDigest("abc", 1));
  for (int field = 0; field < 5; ++field) {
    FileStamp other = file.stamp();
    if (field == 0) ++other.device;
    if (field == 1) ++other.inode;
    if (field == 2) ++other.size;
    if (field == 3) ++other.mtime_ns;
    if (field == 4) ++other.ctime_ns;
    EXPECT_EQ(cache.Find(other), std::nullopt) << field;
  }
}

TEST_F(DigestCacheTest, UsesWhatItRemembers) {
  ManualClock clock;
  MappedFile file = Open();
  SetTo(clock, file.stamp(), std::chrono::seconds(3));
  DigestCache cache(root_ + "/digests", &clock);
  const Digest256 planted = ContentDigest("planted", 1);
  cache.Remember(file.stamp(), planted);
  EXPECT_EQ(cache.ContentDigestOf(file, 1).value(), planted);
}

TEST_F(DigestCacheTest, AFileThatHasJustChangedIsNotRemembered) {
  ManualClock clock;
  MappedFile file = Open();
  SetTo(clock, file.stamp(), std::chrono::seconds(1));
  DigestCache cache(root_ + "/digests", &clock);
  EXPECT_TRUE(cache.ContentDigestOf(file, 1).ok());
  EXPECT_EQ(cache.Find(file.stamp()), std::nullopt);
}

TEST_F(DigestCacheTest, ADamagedEntryIsAMiss) {
  ManualClock clock;
  MappedFile file = Open();
  SetTo(clock, file.stamp(), std::chrono::seconds(3));
  DigestCache cache(root_ + "/digests", &clock);
  cache.Remember(file.stamp(), ContentDigest("abc", 1));
  for (const auto& entry : std::filesystem::directory_iterator(root_ + "/digests")) {
    for (const char* text : {"", "x", "pagoda.digest.v1 1 2 3 4 5 00\n"}) {
      std::ofstream(entry.path()) << text;
      EXPECT_EQ(cache.Find(file.stamp()), std::nullopt);
    }
  }
  EXPECT_EQ(cache.ContentDigestOf(file, 1).value(), ContentDigest("abc", 1));
}

TEST_F(DigestCacheTest, WorksWithoutAFolderThatCanBeWritten) {
  ManualClock clock;
  MappedFile file = Open();
  SetTo(clock, file.stamp(), std::chrono::seconds(3));
  // A file stands where the folder should be: fails for every user, root included.
  for (const std::string& folder : {root_ + "/model/digests", std::string()}) {
    DigestCache cache(folder, &clock);
    EXPECT_EQ(cache.ContentDigestOf(file, 1).value(), ContentDigest("abc", 1));
    EXPECT_EQ(cache.Find(file.stamp()), std::nullopt);
  }
}

TEST_F(DigestCacheTest, AFileThatChangesWhileItIsReadIsAnError) {
  MappedFile file = Open();
  timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, (root_ + "/model").c_str(), times, 0), 0);
  DigestCache cache("");
  EXPECT_EQ(cache.ContentDigestOf(file, 1).status().code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace pagoda::model
