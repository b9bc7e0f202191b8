#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/base/numeric.h"
#include "kernels/kv/kv_layout.h"
#include "kernels/kv/write_kv.h"
#include "kernels/testing/test_data.h"

namespace pagoda::kernels {
namespace {

using testing::AlignedBytes;
using testing::TestRandom;

KvSpec Spec(KvDtype k, KvDtype v) { return {32, 64, 3, 2, k, v}; }

TEST(KvLayoutTest, Slices_are_disjoint_aligned_ordered_and_fill_the_block) {
  for (const KvDtype k : {KvDtype::kF32, KvDtype::kBf16, KvDtype::kFp16}) {
    for (const KvDtype v : {KvDtype::kF32, KvDtype::kBf16, KvDtype::kFp16}) {
      KvLayout layout;
      ASSERT_TRUE(BuildKvLayout(Spec(k, v), &layout).ok());
      const int64_t k_bytes = 32 * 64 * (k == KvDtype::kF32 ? 4 : 2);
      const int64_t v_bytes = 32 * 64 * (v == KvDtype::kF32 ? 4 : 2);
      EXPECT_EQ(layout.block_bytes, 3 * 2 * (k_bytes + v_bytes));
      int64_t at = 0;
      for (int32_t layer = 0; layer < 3; ++layer) {
        for (int32_t head = 0; head < 2; ++head, at += k_bytes) {
          EXPECT_EQ(layout.K(layer, head).data, at);
          EXPECT_EQ(layout.K(layer, head).dtype, k);
        }
        for (int32_t head = 0; head < 2; ++head, at += v_bytes) {
          EXPECT_EQ(layout.V(layer, head).data, at);
          EXPECT_EQ(layout.V(layer, head).dtype, v);
        }
      }
      EXPECT_EQ(at % 64, 0);
    }
  }
}

TEST(KvLayoutTest, What_it_was_not_built_for_is_refused_by_name) {
  const auto error = [](void (*change)(KvSpec&)) {
    KvSpec spec = Spec(KvDtype::kBf16, KvDtype::kBf16);
    change(spec);
    KvLayout layout;
    return KernelStatusText(BuildKvLayout(spec, &layout));
  };
  EXPECT_EQ(error([](KvSpec& s) { s.block_tokens = 24; }),
            "block_tokens: 24 is not a power of two in [16, 256]");
  EXPECT_EQ(error([](KvSpec& s) { s.block_tokens = 512; }),
            "block_tokens: 512 is not a power of two in [16, 256]");
  EXPECT_EQ(error([](KvSpec& s) { s.head_dim = 72; }), "head_dim: 72 is not a multiple of 16");
  EXPECT_EQ(error([](KvSpec& s) { s.head_dim = 0; }), "head_dim: 0 is outside [1, 256]");
  EXPECT_EQ(error([](KvSpec& s) { s.num_layers = 0; }), "num_layers: 0 is outside [1, 1024]");
  EXPECT_EQ(error([](KvSpec& s) { s.num_kv_heads = -1; }), "num_kv_heads: -1 is outside [1, 1024]");
  EXPECT_EQ(error([](KvSpec& s) { s.k_dtype = KvDtype::kInt8; }),
            "k_dtype: no kernel for this type");
  EXPECT_EQ(error([](KvSpec& s) { s.v_dtype = KvDtype::kFp8E4m3; }),
            "v_dtype: no kernel for this type");
  EXPECT_EQ(error([](KvSpec& s) {
              s.num_layers = 1024;
              s.num_kv_heads = 1024;
            }),
            "block_bytes: 8589934592 is outside [1, 67108864]");
}

TEST(WriteKvTest, A_token_lands_transposed_in_k_and_plain_in_v_and_touches_nothing_else) {
  for (const KvDtype v_dtype : {KvDtype::kBf16, KvDtype::kFp16}) {
    KvLayout layout;
    ASSERT_TRUE(BuildKvLayout(Spec(KvDtype::kF32, v_dtype), &layout).ok());
    const std::vector<float> k = TestRandom(1).Normals(128), v = TestRandom(2).Normals(128);
    AlignedBytes block(layout.block_bytes);
    const int32_t layer = 1, slot = 5;
    WriteKv({&layout, layer, block.data(), slot, k.data(), v.data()});
    std::vector<uint8_t> expected(layout.block_bytes, 0xFF);
    for (int32_t head = 0; head < 2; ++head) {
      for (int32_t d = 0; d < 64; ++d) {
        std::memcpy(&expected[layout.K(layer, head).data + (d * 32 + slot) * 4], &k[head * 64 + d],
                    4);
        const float value = v[head * 64 + d];
        const uint16_t stored = v_dtype == KvDtype::kBf16 ? FloatToBf16(value) : FloatToHalf(value);
        std::memcpy(&expected[layout.V(layer, head).data + (slot * 64 + d) * 2], &stored, 2);
      }
    }
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), block.data()));
  }
}

}  // namespace
}  // namespace pagoda::kernels
