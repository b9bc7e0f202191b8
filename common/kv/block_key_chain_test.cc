#include "common/kv/block_key_chain.h"

#include <numeric>
#include <set>

#include "common/kv/identity.h"
#include "gtest/gtest.h"

namespace pagoda {
namespace {

constexpr uint32_t kBlockTokens = 16;

std::vector<TokenId> Tokens(size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 100);
  return tokens;
}

BlockKeyChain Chain(std::string_view tenant, CacheScope scope) {
  Space space;
  return BlockKeyChain(MakeNamespace("", space, tenant, 1, 0), MakeSharedNamespace("", space, 0),
                       scope, kBlockTokens);
}

TEST(BlockKeyChain, GivesTheSameKeysHoweverTheTokensArrive) {
  std::vector<TokenId> tokens = Tokens(200);
  BlockKeyChain whole = Chain("a", CacheScope::Tenant());
  whole.Append(tokens);
  EXPECT_EQ(whole.refs().size(), 12u);
  for (size_t step : {1, 3, 16, 17, 50}) {
    BlockKeyChain chain = Chain("a", CacheScope::Tenant());
    for (size_t i = 0; i < tokens.size(); i += step) {
      chain.Append(std::span(tokens).subspan(i, std::min(step, tokens.size() - i)));
    }
    EXPECT_EQ(chain.refs(), whole.refs());
    EXPECT_EQ(chain.num_tokens(), 200u);
  }
}

TEST(BlockKeyChain, KeysDependOnEveryEarlierTokenAndOnNoLaterOne) {
  BlockKeyChain base = Chain("a", CacheScope::Tenant());
  std::vector<TokenId> tokens = Tokens(10 * kBlockTokens);
  base.Append(tokens);
  for (size_t changed : {size_t{0}, size_t{15}, size_t{16}, size_t{100}}) {
    std::vector<TokenId> other = tokens;
    ++other[changed];
    BlockKeyChain chain = Chain("a", CacheScope::Tenant());
    chain.Append(other);
    for (size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(chain.refs()[i].key == base.refs()[i].key, i < changed / kBlockTokens);
    }
  }
}

TEST(BlockKeyChain, R19TwoTenantsWithASharedRangeOfKBlocksHaveExactlyKEqualKeys) {
  std::vector<TokenId> tokens = Tokens(40 * kBlockTokens);
  for (uint64_t k : {0, 1, 2, 31, 32, 33, 40}) {
    for (uint64_t extra : {0, 1, 15}) {  // a range may end inside a block
      CacheScope scope = CacheScope::SharedTokens(k * kBlockTokens + extra);
      BlockKeyChain a = Chain("a", scope), b = Chain("b", scope);
      a.Append(tokens);
      b.Append(tokens);
      std::set<BlockKey> keys;
      for (const BlockRef& ref : a.refs()) keys.insert(ref.key);
      size_t equal = 0;
      for (size_t i = 0; i < b.refs().size(); ++i) {
        if (keys.contains(b.refs()[i].key)) ++equal;
        EXPECT_EQ(b.refs()[i].key == a.refs()[i].key, i < k);
      }
      EXPECT_EQ(equal, k);
    }
  }
}

TEST(BlockKeyChain, TheScopesSharedAndTenantAreTheEndsOfTheRange) {
  std::vector<TokenId> tokens = Tokens(5 * kBlockTokens);
  BlockKeyChain shared_a = Chain("a", CacheScope::Shared());
  BlockKeyChain shared_b = Chain("b", CacheScope::Shared());
  BlockKeyChain own = Chain("a", CacheScope::Tenant());
  BlockKeyChain none = Chain("a", CacheScope::None());
  for (BlockKeyChain* chain : {&shared_a, &shared_b, &own, &none}) chain->Append(tokens);
  EXPECT_EQ(shared_a.refs(), shared_b.refs());
  EXPECT_NE(own.refs()[0].key, shared_a.refs()[0].key);
  EXPECT_TRUE(none.refs().empty());
  EXPECT_EQ(none.num_tokens(), tokens.size());
}

TEST(BlockKeyChain, TheAnchorIsTheKeyOfTheFirstBlockOfTheRun) {
  BlockKeyChain chain = Chain("a", CacheScope::Tenant());
  chain.Append(Tokens(70 * kBlockTokens));
  for (size_t i = 0; i < 70; ++i) {
    EXPECT_EQ(chain.refs()[i].depth, i);
    EXPECT_EQ(chain.refs()[i].anchor, chain.refs()[i - i % 32].key);
  }
}

TEST(BlockKeyChain, SaysWhichNamespaceABlockIsIn) {
  Namespace tenant{Sha256::Of("t")}, shared{Sha256::Of("s")};
  BlockKeyChain chain(tenant, shared, CacheScope::SharedTokens(2 * kBlockTokens + 3), kBlockTokens);
  EXPECT_EQ(chain.NamespaceOf(1), shared);
  EXPECT_EQ(chain.NamespaceOf(2), tenant);
}

TEST(BlockKey, IsReadFromExactly32Bytes) {
  EXPECT_FALSE(BlockKey::FromBytes("short").ok());
  BlockKey key = *BlockKey::FromBytes(std::string(32, '\xab'));
  EXPECT_EQ(key.ToHex().substr(0, 4), "abab");
  EXPECT_FALSE(key.IsZero());
  EXPECT_TRUE(BlockKey{}.IsZero());
  EXPECT_LT(BlockKey{}, key);
}

}  // namespace
}  // namespace pagoda
