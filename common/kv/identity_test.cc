#include "common/kv/identity.h"

#include <fstream>
#include <functional>
#include <set>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/random.h"
#include "common/kv/block_key_chain.h"
#include "common/kv/encoding.h"
#include "common/kv/space_strings.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace pagoda {
namespace {

constexpr uint32_t kBlockTokens = 32;

// Everything that a key depends on.
struct Identity {
  WeightsDigest weights{Sha256::Of("weights")};
  std::optional<Digest256> adapter;
  KvFormat format{.k_dtype = "bf16", .v_dtype = "bf16"};
  LayoutFormat layout{
      "group,layer,k,kscale,v,vscale", "head_dim,token", "token,head_dim", 64, 1, 30, 3, 64};
  RopeFormat rope{"none", "half", 64, 100000.0f, {}};
  std::string numerics = "cpu-f32-r1";
  uint32_t block_tokens = kBlockTokens;
  std::string secret;
  std::string tenant = "acme";
  uint32_t generation = 1;
  uint64_t epoch = 1;

  Space MakeSpace() const {
    SpaceFields fields{weights,         adapter,         format.ToString(), block_tokens,
                       layout.Digest(), rope.ToString(), numerics};
    return pagoda::MakeSpace(fields);
  }
  std::vector<BlockKey> Keys(CacheScope scope = CacheScope::Tenant()) const {
    Space space = MakeSpace();
    BlockKeyChain chain(MakeNamespace(secret, space, tenant, generation, epoch),
                        MakeSharedNamespace(secret, space, epoch), scope, block_tokens);
    chain.Append(std::vector<TokenId>(4 * kBlockTokens, 5));
    std::vector<BlockKey> keys;
    for (const BlockRef& ref : chain.refs()) keys.push_back(ref.key);
    return keys;
  }
};

TEST(Identity, R16R17R18ChangingAnyFieldAloneChangesEveryKey) {
  using Change = std::function<void(Identity&)>;
  const std::vector<std::pair<std::string, Change>> changes = {
      {"weights", [](Identity& i) { i.weights.bytes[31] ^= 1; }},
      {"adapter", [](Identity& i) { i.adapter = Sha256::Of("adapter"); }},
      {"k dtype", [](Identity& i) { i.format.k_dtype = "f32"; }},
      {"v dtype", [](Identity& i) { i.format.v_dtype = "f32"; }},
      {"scales", [](Identity& i) { i.format.scales = Sha256::Of("scales"); }},
      {"k group", [](Identity& i) { i.format.k_group = 64; }},
      {"v group", [](Identity& i) { i.format.v_group = 64; }},
      {"transforms", [](Identity& i) { i.format.transforms = "hadamard"; }},
      {"skip list", [](Identity& i) { i.format.skip_layers = {0}; }},
      {"block tokens", [](Identity& i) { i.block_tokens = 64; }},
      {"layout order", [](Identity& i) { i.layout.order = "layer,group,k,kscale,v,vscale"; }},
      {"layout k", [](Identity& i) { i.layout.k_tile = "token,head_dim"; }},
      {"layout v", [](Identity& i) { i.layout.v_tile = "head_dim,token"; }},
      {"layout align", [](Identity& i) { i.layout.align_bytes = 128; }},
      {"layout groups", [](Identity& i) { i.layout.head_groups = 3; }},
      {"layout layers", [](Identity& i) { i.layout.layers = 31; }},
      {"layout heads", [](Identity& i) { i.layout.kv_heads = 4; }},
      {"layout head_dim", [](Identity& i) { i.layout.head_dim = 128; }},
      {"rope type", [](Identity& i) { i.rope.type = "linear"; }},
      {"rope pairing", [](Identity& i) { i.rope.pairing = "adjacent"; }},
      {"rope dim", [](Identity& i) { i.rope.dim = 32; }},
      {"rope theta", [](Identity& i) { i.rope.theta = 100000.01f; }},
      {"rope scaling",
       [](Identity& i) {
         i.rope.scaling = {{"factor", 8.0f}};
       }},
      {"numerics", [](Identity& i) { i.numerics = "cpu-f32-r2"; }},
      {"secret", [](Identity& i) { i.secret = "s"; }},
      {"tenant", [](Identity& i) { i.tenant = "acme2"; }},
      {"generation", [](Identity& i) { i.generation = 2; }},
      {"epoch", [](Identity& i) { i.epoch = 2; }},
  };
  std::set<BlockKey> seen;
  size_t made = 0;
  auto add = [&](const Identity& identity, const std::string& name) {
    for (const BlockKey& key : identity.Keys()) {
      ++made;
      EXPECT_TRUE(seen.insert(key).second) << name;
    }
  };
  add(Identity{}, "base");
  for (const auto& [name, change] : changes) {
    Identity identity;
    change(identity);
    add(identity, name);
  }
  EXPECT_GE(made, 2 * changes.size());
}

TEST(Identity, MovingBytesBetweenNeighbouringStringsChangesTheSpace) {
  std::set<Space> spaces;
  for (size_t cut = 0; cut <= 6; ++cut) {
    std::string text = "abcdef";
    SpaceFields fields;
    fields.rope = text.substr(0, cut);
    fields.numerics = text.substr(cut);
    EXPECT_TRUE(spaces.insert(MakeSpace(fields)).second);
  }
}

TEST(Identity, NoTwoListsOfStringsHaveOneEncoding) {
  uint64_t state = RandomId();
  SCOPED_TRACE("seed " + std::to_string(state));
  auto next = [&] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 40; };
  std::map<std::string, std::vector<std::string>> seen;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> list(next() % 4);
    std::string encoded;
    for (std::string& text : list) {
      text.assign(next() % 6, '\0');
      for (char& byte : text) byte = static_cast<char>(next() % 3);  // like lengths, to provoke
      AppendLp(encoded, text);
    }
    auto [it, inserted] = seen.emplace(encoded, list);
    ASSERT_EQ(it->second, list);
  }
}

TEST(IdentityDeathTest, AnAmbiguousTextEndsTheProcess) {
  KvFormat format{.k_dtype = "bf16;v=f32", .v_dtype = "bf16"};
  EXPECT_DEATH(format.ToString(), "ambiguous");
}

// The vectors were computed by testdata/make_vectors.py from the written definition alone.
TEST(Identity, R21MatchesVectorsComputedIndependently) {
  std::ifstream file(PAGODA_KV_VECTORS);
  auto vectors = nlohmann::json::parse(file);
  ASSERT_EQ(vectors.size(), 3u);
  for (const auto& v : vectors) {
    SCOPED_TRACE(v["name"].get<std::string>());
    SpaceFields fields;
    std::string weights = *FromHex(v["weights_digest"].get<std::string>());
    fields.weights = *WeightsDigest::FromBytes(weights);
    std::string adapter = *FromHex(v["adapter"].get<std::string>());
    if (!adapter.empty()) fields.adapter = BlockKey::FromBytes(adapter)->bytes;
    fields.kv_format = v["kv_format"];
    fields.block_tokens = v["block_tokens"];
    fields.layout = Sha256::Of(v["layout"].get<std::string>());
    fields.rope = v["rope"];
    fields.numerics = v["numerics"];
    Space space = MakeSpace(fields);
    EXPECT_EQ(space.ToHex(), v["space"]);
    std::string secret = *FromHex(v["secret"].get<std::string>());
    Namespace tenant =
        MakeNamespace(secret, space, v["tenant"].get<std::string>(), v["generation"], v["epoch"]);
    Namespace shared = MakeSharedNamespace(secret, space, v["epoch"]);
    EXPECT_EQ(tenant.ToHex(), v["tenant_namespace"]);
    EXPECT_EQ(shared.ToHex(), v["shared_namespace"]);
    BlockKeyChain chain(tenant, shared, CacheScope::SharedTokens(v["shared_tokens"]),
                        fields.block_tokens);
    uint64_t stride = v["tokens"]["stride"];
    for (uint64_t i = 0; i < v["tokens"]["count"].get<uint64_t>(); ++i) {
      TokenId token = static_cast<TokenId>((7 + stride * i) % 49152);
      chain.Append({&token, 1});
    }
    ASSERT_EQ(chain.refs().size(), v["keys"].size());
    for (size_t i = 0; i < chain.refs().size(); ++i) {
      EXPECT_EQ(chain.refs()[i].key.ToHex(), v["keys"][i]);
      EXPECT_EQ(chain.refs()[i].anchor.ToHex(), v["anchors"][i]);
      EXPECT_EQ(chain.refs()[i].depth, i);
    }
  }
}

TEST(SpaceStrings, AreThoseOfTheReadme) {
  Identity identity;
  EXPECT_EQ(identity.format.ToString(),
            "k=bf16;v=bf16;scales=;k_group=0;v_group=0;transforms=;skip=");
  EXPECT_EQ(identity.layout.ToString(),
            "order=group,layer,k,kscale,v,vscale;k=head_dim,token;v=token,head_dim;align=64;"
            "groups=1;layers=30;kv_heads=3;head_dim=64");
  EXPECT_EQ(identity.rope.ToString(), "type=none;pairing=half;dim=64;theta=47c35000");
}

}  // namespace
}  // namespace pagoda
