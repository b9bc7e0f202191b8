#include "common/placement/known_keys.h"

#include <vector>

#include "gtest/gtest.h"

namespace pagoda::placement {
namespace {

using Keys = std::vector<uint64_t>;

TEST(KnownKeysTest, CountsLeadingBlocksUpToTheFirstGap) {
  KnownKeys known(10);
  known.Touch(Keys{1, 2, 3});
  EXPECT_EQ(known.LeadingKnown(Keys{1, 2, 3, 4}), 3u);
  EXPECT_EQ(known.LeadingKnown(Keys{1, 9, 3}), 1u);
  EXPECT_EQ(known.LeadingKnown(Keys{9, 1}), 0u);
  EXPECT_EQ(known.LeadingKnown(Keys{}), 0u);
}

TEST(KnownKeysTest, ForgetsTheLeastRecentChainFromItsEnd) {
  KnownKeys known(5);
  known.Touch(Keys{1, 2, 3});
  known.Touch(Keys{11, 12, 13});
  EXPECT_EQ(known.size(), 5u);
  EXPECT_EQ(known.LeadingKnown(Keys{11, 12, 13}), 3u);
  EXPECT_EQ(known.LeadingKnown(Keys{1, 2, 3}), 2u);
}

TEST(KnownKeysTest, AChainLongerThanTheLimitKeepsItsBeginning) {
  KnownKeys known(3);
  known.Touch(Keys{1, 2, 3, 4, 5});
  EXPECT_EQ(known.size(), 3u);
  EXPECT_EQ(known.LeadingKnown(Keys{1, 2, 3, 4, 5}), 3u);
}

TEST(KnownKeysTest, TouchingAgainKeepsAChainAlive) {
  KnownKeys known(4);
  known.Touch(Keys{1, 2});
  known.Touch(Keys{11, 12});
  known.Touch(Keys{1, 2});
  known.Touch(Keys{21, 22});
  EXPECT_EQ(known.LeadingKnown(Keys{1, 2}), 2u);
  EXPECT_EQ(known.LeadingKnown(Keys{11, 12}), 0u);
}

}  // namespace
}  // namespace pagoda::placement
