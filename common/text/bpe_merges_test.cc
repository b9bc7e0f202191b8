#include "common/text/bpe_merges.h"

#include <map>
#include <random>
#include <utility>

#include "gtest/gtest.h"

namespace pagoda::text {
namespace {

using Ids = std::vector<uint32_t>;
using Rules = std::map<std::pair<uint32_t, uint32_t>, std::pair<uint32_t, uint32_t>>;

// The definition: look at all pairs, merge the leftmost of the most important, start again.
Ids MergeByDefinition(Ids ids, const Rules& rules) {
  while (true) {
    size_t best = ids.size();
    uint32_t best_rank = UINT32_MAX;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      auto rule = rules.find({ids[i], ids[i + 1]});
      if (rule == rules.end() || rule->second.first >= best_rank) continue;
      best = i;
      best_rank = rule->second.first;
    }
    if (best == ids.size()) return ids;
    ids[best] = rules.at({ids[best], ids[best + 1]}).second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Pairs of a few letters, then pairs of what they made, as a trained vocabulary has them.
Rules RandomRules(std::mt19937& random, uint32_t letters, uint32_t count) {
  Rules rules;
  for (uint32_t rank = 0; rank < count; ++rank) {
    uint32_t known = letters + rank;
    rules.try_emplace({random() % known, random() % known}, rank, known);
  }
  return rules;
}

BpeMerges Build(const Rules& rules) {
  BpeMerges merges;
  for (const auto& [pair, merge] : rules) {
    EXPECT_TRUE(merges.Add(pair.first, pair.second, merge.first, merge.second));
  }
  return merges;
}

TEST(BpeMergesTest, RandomWordsMergeAsByDefinition) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  BpeMerges::Scratch scratch;
  for (int round = 0; round < 300; ++round) {
    Rules rules = RandomRules(random, 4, 1 + random() % 40);
    BpeMerges merges = Build(rules);
    for (int word = 0; word < 10; ++word) {
      Ids ids(random() % 60);
      for (uint32_t& id : ids) id = random() % 4;
      Ids expected = MergeByDefinition(ids, rules);
      size_t looked_at = merges.Apply(ids, scratch);
      ASSERT_EQ(ids, expected);
      ASSERT_LE(looked_at, 3 * (expected.size() + 60));
    }
  }
}

TEST(BpeMergesTest, AMebibyteOfOneWordTakesStepsInProportion) {
  // "aa", "aaaa", ... up to 2^12 letters: every merge opens new pairs on both sides.
  BpeMerges merges;
  for (uint32_t level = 0; level < 12; ++level) {
    ASSERT_TRUE(merges.Add(level, level, level, level + 1));
  }
  constexpr size_t kLetters = size_t{1} << 20;
  Ids ids(kLetters, 0);
  BpeMerges::Scratch scratch;
  size_t looked_at = merges.Apply(ids, scratch);
  EXPECT_EQ(ids, Ids(kLetters >> 12, 12));
  EXPECT_GT(looked_at, kLetters / 2);
  EXPECT_LE(looked_at, 3 * kLetters);
}

TEST(BpeMergesTest, TheLeftmostOfEqualPairsMergesFirst) {
  BpeMerges merges;
  ASSERT_TRUE(merges.Add(0, 0, 0, 1));
  EXPECT_FALSE(merges.Add(0, 0, 5, 2));
  BpeMerges::Scratch scratch;
  Ids ids = {0, 0, 0};
  merges.Apply(ids, scratch);
  EXPECT_EQ(ids, (Ids{1, 0}));
}

}  // namespace
}  // namespace pagoda::text
