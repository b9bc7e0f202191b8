#include "kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/attention/attend_tile.h"
#include "kernels/base/numeric.h"
#include "kernels/testing/test_data.h"

namespace pagoda::kernels {
namespace {

using testing::AlignedBytes;
using testing::BitDifference;
using testing::TestRandom;

// A sequence of `length` tokens in blocks taken from a pool in shuffled order. What no token wrote
// is `poison`. One layer, one kv head.
class Cache {
 public:
  Cache(int32_t head_dim, int32_t block_tokens, int32_t length, KvDtype k, KvDtype v,
        uint8_t poison = 0xFF)
      : blocks_((length + block_tokens - 1) / block_tokens), poison_(poison) {
    const KvSpec spec = {block_tokens, head_dim, 1, 1, k, v};
    EXPECT_TRUE(BuildKvLayout(spec, &layout_).ok());
    pool_ = std::make_unique<AlignedBytes>(blocks_.size() * layout_.block_bytes);
    std::memset(pool_->data(), poison_, blocks_.size() * layout_.block_bytes);
    TestRandom random(length);
    std::vector<size_t> order(blocks_.size());
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Next() % i]);
    for (size_t i = 0; i < order.size(); ++i) {
      blocks_[i] = pool_->data() + order[i] * layout_.block_bytes;
    }
    k_ = TestRandom(1).Normals(static_cast<size_t>(length) * head_dim);
    v_ = TestRandom(2).Normals(static_cast<size_t>(length) * head_dim);
    for (int32_t t = 0; t < length; ++t) Write(t, &k_[t * head_dim], &v_[t * head_dim]);
  }

  void Write(int32_t t, const float* k, const float* v) {
    const int32_t block_tokens = layout_.spec.block_tokens;
    WriteKv({&layout_, 0, const_cast<uint8_t*>(blocks_[t / block_tokens]), t % block_tokens, k, v});
  }

  AttentionSplitParams Params(const std::vector<float>& q, const std::vector<int32_t>& visible,
                              int32_t group) const {
    return {.k = layout_.K(0, 0),
            .v = layout_.V(0, 0),
            .block_tokens = layout_.spec.block_tokens,
            .head_dim = layout_.spec.head_dim,
            .blocks = blocks_.data(),
            .q = q.data(),
            .q_stride = static_cast<int64_t>(q.size() / visible.size()),
            .rows = static_cast<int32_t>(visible.size()),
            .group = group,
            .visible = visible.data(),
            .scale = 1.0f / std::sqrt(static_cast<float>(layout_.spec.head_dim)),
            .split = 0,
            .states = nullptr};
  }

  // What attention reads: K and V of a token as they were stored.
  double K(int32_t t, int32_t d) const { return Stored(layout_.spec.k_dtype, k_, t, d); }
  double V(int32_t t, int32_t d) const { return Stored(layout_.spec.v_dtype, v_, t, d); }
  int32_t head_dim() const { return layout_.spec.head_dim; }

 private:
  double Stored(KvDtype dtype, const std::vector<float>& from, int32_t t, int32_t d) const {
    const float value = from[t * layout_.spec.head_dim + d];
    if (dtype == KvDtype::kFp16) return testing::HalfValue(FloatToHalf(value));
    return dtype == KvDtype::kBf16 ? Bf16ToFloat(FloatToBf16(value)) : value;
  }

  KvLayout layout_;
  std::vector<const uint8_t*> blocks_;
  std::unique_ptr<AlignedBytes> pool_;
  uint8_t poison_;
  std::vector<float> k_, v_;
};

std::vector<float> Attend(const Ops& ops, const Cache& cache, const std::vector<float>& q,
                          const std::vector<int32_t>& visible, int32_t group) {
  const auto rows = static_cast<int32_t>(visible.size());
  std::vector<float> scratch(AttendTileScratchFloats(rows, group, cache.head_dim()), NAN);
  const int64_t out_stride = int64_t{group} * cache.head_dim();
  std::vector<float> out(rows * out_stride);
  AttendTile(ops, {cache.Params(q, visible, group), scratch.data(), out.data(), out_stride});
  return out;
}

struct Shape {
  int32_t head_dim, block_tokens, group;
  KvDtype k, v;
};
constexpr Shape kShapes[] = {
    {64, 32, 3, KvDtype::kBf16, KvDtype::kBf16},  {64, 32, 3, KvDtype::kF32, KvDtype::kF32},
    {64, 64, 1, KvDtype::kBf16, KvDtype::kF32},   {128, 32, 4, KvDtype::kF32, KvDtype::kBf16},
    {128, 64, 2, KvDtype::kBf16, KvDtype::kBf16}, {80, 16, 7, KvDtype::kF32, KvDtype::kF32},
    {16, 256, 5, KvDtype::kBf16, KvDtype::kBf16}, {64, 32, 3, KvDtype::kFp16, KvDtype::kFp16},
    {80, 64, 2, KvDtype::kFp16, KvDtype::kF32},   {128, 16, 1, KvDtype::kBf16, KvDtype::kFp16}};
// Around the borders of blocks (16, 32, 64), of splits (256) and of vectors (8).
constexpr int32_t kLengths[] = {1,  7,   8,   9,   15,  16,  31,  32,  33,  63, 64,
                                65, 200, 255, 256, 257, 289, 511, 512, 513, 777};

TEST(AttentionTest, Scalar_lies_within_its_error_bound) {
  for (const Shape& shape : kShapes) {
    for (const int32_t length : {1, 33, 257, 600}) {
      const Cache cache(shape.head_dim, shape.block_tokens, length, shape.k, shape.v);
      const std::vector<float> q = TestRandom(3).Normals(shape.head_dim);
      const std::vector<float> out = Attend(testing::ScalarOps(), cache, q, {length}, 1);
      const double scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
      std::vector<double> score(length), o(shape.head_dim);
      double magnitude = 0, largest = -1e30, sum = 0;
      for (int32_t t = 0; t < length; ++t) {
        double absolute = 0;
        for (int32_t d = 0; d < shape.head_dim; ++d) {
          score[t] += q[d] * cache.K(t, d);
          absolute += std::fabs(q[d] * cache.K(t, d));
        }
        score[t] *= scale;
        magnitude = std::max(magnitude, absolute * scale);
        largest = std::max(largest, score[t]);
      }
      double largest_v = 0;
      for (int32_t t = 0; t < length; ++t) {
        sum += std::exp(score[t] - largest);
        for (int32_t d = 0; d < shape.head_dim; ++d) {
          o[d] += std::exp(score[t] - largest) * cache.V(t, d);
          largest_v = std::max(largest_v, std::fabs(cache.V(t, d)));
        }
      }
      // In units of 2^-24: a score's chain; the difference to the maximum (twice a score); exp and
      // its rescales and merges (3 per block); the sums over tokens. Numerator and denominator.
      const double score_error = (shape.head_dim / 2 + 3 + 2) * magnitude;
      const double weight_error = score_error + 3 * (length / shape.block_tokens + 3);
      const double bound = std::ldexp(2 * (weight_error + length + 4) * largest_v, -24);
      for (int32_t d = 0; d < shape.head_dim; ++d) {
        ASSERT_NEAR(out[d], o[d] / sum, bound) << length << " " << d;
      }
    }
  }
}

TEST(AttentionTest, Every_isa_gives_the_scalar_bits_around_block_and_split_borders) {
  if (testing::Avx2Ops() == nullptr) GTEST_SKIP() << "this CPU has no AVX2";
  for (const Shape& shape : kShapes) {
    for (const int32_t length : kLengths) {
      const Cache cache(shape.head_dim, shape.block_tokens, length, shape.k, shape.v);
      // A chunk of a prompt: the last rows of the sequence, causal.
      const int32_t rows = std::min(length, 1 + length % 9);
      std::vector<int32_t> visible(rows);
      std::iota(visible.begin(), visible.end(), length - rows + 1);
      const auto q = TestRandom(4).Normals(rows * (shape.group * shape.head_dim + 3));
      ASSERT_EQ(BitDifference(Attend(testing::ScalarOps(), cache, q, visible, shape.group),
                              Attend(*testing::Avx2Ops(), cache, q, visible, shape.group)),
                "")
          << "head_dim " << shape.head_dim << " length " << length;
    }
  }
}

TEST(AttentionTest, Large_scores_that_move_the_maximum_give_the_scalar_bits_too) {
  if (testing::Avx2Ops() == nullptr) GTEST_SKIP() << "this CPU has no AVX2";
  const Cache cache(64, 32, 700, KvDtype::kF32, KvDtype::kF32);
  std::vector<float> q = TestRandom(4).Normals(4 * 3 * 64);
  for (float& value : q) value *= 30;
  EXPECT_EQ(BitDifference(Attend(testing::ScalarOps(), cache, q, {697, 698, 699, 700}, 3),
                          Attend(*testing::Avx2Ops(), cache, q, {697, 698, 699, 700}, 3)),
            "");
}

TEST(AttentionTest, A_decode_row_has_the_bits_of_the_same_row_inside_a_prefill_tile) {
  for (const Ops* ops : testing::EveryOps()) {
    for (const Shape& shape : kShapes) {
      const int32_t length = 300, rows = 21;
      const int32_t width = shape.group * shape.head_dim;
      const Cache cache(shape.head_dim, shape.block_tokens, length, shape.k, shape.v);
      const auto q = TestRandom(5).Normals(rows * width);
      std::vector<int32_t> visible(rows);
      for (int32_t row = 0; row < rows; ++row) visible[row] = 1 + (row * 83) % length;
      const std::vector<float> tile = Attend(*ops, cache, q, visible, shape.group);
      for (int32_t row = 0; row < rows; ++row) {
        const std::vector<float> one(q.begin() + row * width, q.begin() + (row + 1) * width);
        const std::vector<float> expected(tile.begin() + row * width,
                                          tile.begin() + (row + 1) * width);
        ASSERT_EQ(BitDifference(Attend(*ops, cache, one, {visible[row]}, shape.group), expected),
                  "")
            << ops->isa << " row " << row;
      }
    }
  }
}

TEST(AttentionTest, Splits_computed_apart_and_merged_have_the_bits_of_one_walk) {
  for (const Ops* ops : testing::EveryOps()) {
    for (const int32_t length : {40, 256, 257, 1000}) {
      const int32_t group = 3, head_dim = 64, splits = AttnSplits(length);
      const Cache cache(head_dim, 32, length, KvDtype::kBf16, KvDtype::kBf16);
      const auto q = TestRandom(6).Normals(group * head_dim);
      const std::vector<int32_t> visible = {length};
      AttentionSplitParams params = cache.Params(q, visible, group);
      const int64_t split_floats = int64_t{group} * AttnStateFloats(head_dim);
      std::vector<float> states(splits * split_floats, NAN), scratch(split_floats, NAN);
      for (int32_t split = splits - 1; split >= 0; --split) {
        params.split = split;
        params.states = &states[split * split_floats];
        ops->attention_split(params);
      }
      std::vector<float> out(group * head_dim);
      MergeSplits(*ops, {states.data(), splits, scratch.data(), out.data(), group * head_dim, 1,
                         group, head_dim});
      EXPECT_EQ(BitDifference(out, Attend(*ops, cache, q, visible, group)), "") << length;
    }
  }
}

TEST(AttentionTest, No_slot_beyond_the_visible_length_reaches_a_result) {
  for (const Ops* ops : testing::EveryOps()) {
    for (const Shape& shape : kShapes) {
      for (const int32_t length : {1, 5, 31, 33, 250, 258}) {
        const int32_t rows = std::min(length, 3);
        std::vector<int32_t> visible(rows);
        std::iota(visible.begin(), visible.end(), length - rows + 1);
        const auto q = TestRandom(7).Normals(rows * shape.group * shape.head_dim);
        const auto with = [&](uint8_t poison) {
          const Cache cache(shape.head_dim, shape.block_tokens, length, shape.k, shape.v, poison);
          return Attend(*ops, cache, q, visible, shape.group);
        };
        const std::vector<float> clean = with(0);
        ASSERT_TRUE(ops->all_finite(clean.data(), static_cast<int64_t>(clean.size())));
        ASSERT_EQ(BitDifference(clean, with(0xFF)), "") << "NaN; " << ops->isa << " " << length;
        ASSERT_EQ(BitDifference(clean, with(0x7F)), "") << "huge; " << ops->isa << " " << length;
      }
    }
  }
}

TEST(AttentionTest, A_value_beyond_the_range_of_fp16_is_never_clipped_in_silence) {
  for (const Ops* ops : testing::EveryOps()) {
    Cache cache(64, 32, 40, KvDtype::kFp16, KvDtype::kFp16);
    const std::vector<float> q(64, 1.0f), ordinary(64, 1.0f), huge(64, 65520.0f);
    ASSERT_TRUE(ops->all_finite(Attend(*ops, cache, q, {40}, 1).data(), 64));
    cache.Write(7, ordinary.data(), huge.data());
    EXPECT_FALSE(ops->all_finite(Attend(*ops, cache, q, {40}, 1).data(), 64)) << "V; " << ops->isa;
    cache.Write(7, huge.data(), ordinary.data());
    EXPECT_FALSE(ops->all_finite(Attend(*ops, cache, q, {40}, 1).data(), 64)) << "K; " << ops->isa;
  }
}

TEST(AttentionTest, A_later_token_of_the_tile_that_is_nan_spoils_no_earlier_row) {
  for (const Ops* ops : testing::EveryOps()) {
    const int32_t length = 41;
    Cache cache(64, 32, length, KvDtype::kF32, KvDtype::kF32);
    const auto q = TestRandom(8).Normals(6 * 64);
    const std::vector<int32_t> visible = {36, 37, 38, 39, 40, 41};
    const std::vector<float> before = Attend(*ops, cache, q, visible, 1);
    const std::vector<float> nan(64, BitsFloat(0xFFFFFFFFu));
    cache.Write(39, nan.data(), q.data());  // seen by the last two rows; its V is harmless
    const std::vector<float> after = Attend(*ops, cache, q, visible, 1);
    for (int i = 0; i < 6 * 64; ++i) {
      if (i < 4 * 64) {
        ASSERT_EQ(after[i], before[i]) << ops->isa;
      } else {
        ASSERT_TRUE(std::isnan(after[i])) << "a visible NaN must not vanish; " << ops->isa;
      }
    }
  }
}

TEST(AttentionTest, A_split_without_visible_slots_is_an_exact_no_op) {
  for (const Ops* ops : testing::EveryOps()) {
    const Cache cache(64, 32, 100, KvDtype::kBf16, KvDtype::kBf16);
    const auto q = TestRandom(9).Normals(64);
    const std::vector<int32_t> visible = {100};
    AttentionSplitParams params = cache.Params(q, visible, 1);
    std::vector<float> full(AttnStateFloats(64)), empty(AttnStateFloats(64), NAN);
    params.states = full.data();
    ops->attention_split(params);
    params.split = 1;
    params.states = empty.data();
    ops->attention_split(params);
    EXPECT_EQ(empty[AttnSumAt(64)], 0.0f);
    EXPECT_EQ(empty[AttnMaxAt(64)], -INFINITY);
    full[5] = -0.0f;
    std::vector<float> merged = full, nothing = empty;
    ops->attention_merge({empty.data(), merged.data(), 1, 64});
    EXPECT_EQ(BitDifference(merged, full), "") << "not even a -0 changes";
    ops->attention_merge({empty.data(), nothing.data(), 1, 64});
    EXPECT_EQ(BitDifference(nothing, empty), "");
    ops->attention_merge({full.data(), empty.data(), 1, 64});
    for (int i = 0; i < 64; ++i) EXPECT_EQ(empty[i], full[i]);
    EXPECT_EQ(empty[AttnSumAt(64)], full[AttnSumAt(64)]);
  }
}

}  // namespace
}  // namespace pagoda::kernels
