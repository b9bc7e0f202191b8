#include "services/worker/staging_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace pagoda::worker {
namespace {

TEST(StagingBufferTest, R39GivesNoMoreThanItsBytesAndUsesThemAgain) {
  StagingBuffer staging(128, 300);
  EXPECT_EQ(staging.num_slots(), 2u);
  auto first = staging.TryTake();
  auto second = staging.TryTake();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(staging.TryTake(), nullptr);
  std::byte* memory = first.get();
  first.reset();
  EXPECT_EQ(staging.TryTake().get(), memory);
}

TEST(StagingBufferTest, HoldsAtLeastOneBlockAndAlignsIt) {
  StagingBuffer staging(4096, 1);
  auto slot = staging.TryTake();
  ASSERT_NE(slot, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(slot.get()) % 64, 0u);
}

TEST(StagingBufferTest, ABufferMayOutliveTheSupply) {
  std::optional<StagingBuffer> staging(std::in_place, 64, 64);
  auto slot = staging->TryTake();
  staging.reset();
  slot.get()[63] = std::byte{1};
}

}  // namespace
}  // namespace pagoda::worker
