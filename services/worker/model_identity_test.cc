#include "services/worker/model_identity.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kv/write_kv.h"

namespace pagoda::worker {
namespace {

constexpr kernels::KvSpec kSpec{.block_tokens = 32,
                                .head_dim = 64,
                                .num_layers = 2,
                                .num_kv_heads = 3,
                                .k_dtype = kernels::KvDtype::kF32,
                                .v_dtype = kernels::KvDtype::kF32};

// The layout text is a promise about bytes to other workers. This test reads the bytes by the text
// alone: whoever moves a byte must change the text, or two workers share blocks that they read
// differently.
TEST(ModelIdentityTest, TheLayoutTextSaysWhereEachByteLies) {
  SpaceFields fields = MakeSpaceFields(model::ModelConfig{}, Digest256{}, kSpec, "numerics");
  EXPECT_EQ(fields.layout,
            Sha256::Of("order=group,layer,k,kscale,v,vscale;k=head_dim,token;v=token,head_dim;"
                       "align=64;groups=1;layers=2;kv_heads=3;head_dim=64"));

  kernels::KvLayout layout;
  ASSERT_TRUE(kernels::BuildKvLayout(kSpec, &layout).ok());
  const int layers = kSpec.num_layers, heads = kSpec.num_kv_heads, dim = kSpec.head_dim;
  const int tokens = kSpec.block_tokens;
  std::vector<float> block(layout.block_bytes / sizeof(float), -1);
  ASSERT_EQ(block.size(), static_cast<size_t>(layers * 2 * heads * dim * tokens));
  auto number = [&](bool is_v, int layer, int head, int token, int d) {
    return static_cast<float>((((is_v * layers + layer) * heads + head) * tokens + token) * dim +
                              d);
  };
  for (int layer = 0; layer < layers; ++layer) {
    for (int token = 0; token < tokens; ++token) {
      std::vector<float> k(heads * dim), v(heads * dim);
      for (int i = 0; i < heads * dim; ++i) {
        k[i] = number(false, layer, i / dim, token, i % dim);
        v[i] = number(true, layer, i / dim, token, i % dim);
      }
      kernels::WriteKv(
          {&layout, layer, reinterpret_cast<uint8_t*>(block.data()), token, k.data(), v.data()});
    }
  }
  // In the order of the text; f32 has no scales, and every part is a multiple of 64 bytes long.
  size_t at = 0;
  for (int layer = 0; layer < layers; ++layer) {
    for (int head = 0; head < heads; ++head) {
      for (int d = 0; d < dim; ++d) {
        for (int token = 0; token < tokens; ++token) {
          ASSERT_EQ(block[at++], number(false, layer, head, token, d));
        }
      }
    }
    for (int head = 0; head < heads; ++head) {
      for (int token = 0; token < tokens; ++token) {
        for (int d = 0; d < dim; ++d) {
          ASSERT_EQ(block[at++], number(true, layer, head, token, d));
        }
      }
    }
  }
}

TEST(ModelIdentityTest, EveryFieldOfTheSpaceGoesOverTheWire) {
  model::ModelConfig config;
  config.rope_dim = 64;
  config.rope_base = 10000.0f;
  Digest256 weights;
  weights.fill(5);
  SpaceFields fields = MakeSpaceFields(config, weights, kSpec, "cpu-f32-r1");
  v1::SpaceFields message = ToProto(fields);
  EXPECT_EQ(message.weights(), std::string(32, '\x05'));
  EXPECT_EQ(message.adapter(), "");
  EXPECT_EQ(message.kv_format(), "k=f32;v=f32;scales=;k_group=0;v_group=0;transforms=;skip=");
  EXPECT_EQ(message.block_tokens(), 32u);
  EXPECT_EQ(message.layout(), std::string(AsBytes(fields.layout)));
  EXPECT_EQ(message.rope(), "type=none;pairing=adjacent;dim=64;theta=461c4000");
  EXPECT_EQ(message.numerics(), "cpu-f32-r1");
}

}  // namespace
}  // namespace pagoda::worker
