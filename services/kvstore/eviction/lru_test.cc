#include "services/kvstore/eviction/lru.h"

#include <vector>

#include "common/kv/testing/test_blocks.h"
#include "gtest/gtest.h"

namespace pagoda::kvstore {
namespace {

using ::pagoda::testing::MakeChain;
using ::pagoda::testing::RefsOf;

std::vector<BlockRef> Chain(uint64_t seed, size_t count) {
  return RefsOf(MakeChain(seed, count, 1));
}

// Takes victims until none is left.
std::vector<EntryId> Drain(LruPolicy& policy) {
  std::vector<EntryId> order;
  while (auto victim = policy.Victim([](EntryId) { return true; })) {
    order.push_back(*victim);
    policy.Remove(*victim);
    EXPECT_TRUE(policy.CheckIntegrity().ok()) << policy.CheckIntegrity();
  }
  return order;
}

TEST(LruPolicy, AChainPutInOneCallGoesLeafFirst) {
  LruPolicy policy;
  auto refs = Chain(1, 4);
  for (EntryId i = 0; i < 4; ++i) policy.Add(i, refs[i], 1);
  EXPECT_EQ(Drain(policy), (std::vector<EntryId>{3, 2, 1, 0}));
}

TEST(LruPolicy, AChainThatArrivesBlockByBlockGoesLeafFirst) {
  LruPolicy policy;
  auto refs = Chain(1, 5);
  for (EntryId i = 0; i < 5; ++i) policy.Add(i, refs[i], 10 + i);
  EXPECT_EQ(Drain(policy), (std::vector<EntryId>{4, 3, 2, 1, 0}));
}

TEST(LruPolicy, TheChainUsedLongestAgoGoesFirst) {
  LruPolicy policy;
  auto a = Chain(1, 2), b = Chain(2, 2), c = Chain(3, 2);
  EntryId id = 0;
  for (const auto* refs : {&a, &b, &c}) {
    CallNumber call = id + 1;
    for (const BlockRef& ref : *refs) policy.Add(id++, ref, call);
  }
  policy.Touch(0, 100);  // all of chain a
  policy.Touch(1, 100);
  EXPECT_EQ(Drain(policy), (std::vector<EntryId>{3, 2, 5, 4, 1, 0}));
}

TEST(LruPolicy, AChainLongerThanARunIsOrderedAcrossItsRunsWhenReadInOneCall) {
  LruPolicy policy;
  auto refs = Chain(1, 70);
  for (EntryId i = 0; i < 70; ++i) policy.Add(i, refs[i], i + 1);
  for (EntryId i = 0; i < 70; ++i) policy.Touch(i, 1000);
  std::vector<EntryId> order = Drain(policy);
  EXPECT_TRUE(std::is_sorted(order.rbegin(), order.rend()));
}

TEST(LruPolicy, ABranchThatNobodyReadsGoesBeforeTheSharedTrunk) {
  LruPolicy policy;
  auto trunk = Chain(1, 4);
  for (EntryId i = 0; i < 4; ++i) policy.Add(i, trunk[i], 1);
  BlockRef branch = trunk[3];
  branch.key.bytes[0] ^= 1;  // another block 3 behind the same trunk
  policy.Add(4, branch, 2);
  for (EntryId i : {0u, 1u, 2u, 4u}) policy.Touch(i, 3);
  EXPECT_EQ(Drain(policy), (std::vector<EntryId>{3, 4, 2, 1, 0}));
}

TEST(LruPolicy, ACallThatGoesOnDoesNotAgeWhatALaterOneUsed) {
  LruPolicy policy;
  auto a = Chain(1, 3), b = Chain(2, 1);
  policy.Add(0, a[0], 1);
  policy.Add(1, a[1], 1);
  policy.Add(3, b[0], 2);
  policy.Touch(0, 3);
  policy.Touch(0, 1);
  policy.Add(2, a[2], 1);
  EXPECT_EQ(Drain(policy), (std::vector<EntryId>{2, 1, 3, 0}));
}

TEST(LruPolicy, PassesOverWhatCannotGo) {
  LruPolicy policy;
  auto refs = Chain(1, 3);
  for (EntryId i = 0; i < 3; ++i) policy.Add(i, refs[i], 1);
  EXPECT_EQ(policy.Victim([](EntryId id) { return id != 2; }), 1u);
  EXPECT_EQ(policy.Victim([](EntryId) { return false; }), std::nullopt);
}

}  // namespace
}  // namespace pagoda::kvstore
