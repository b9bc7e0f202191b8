#include "services/kvstore/slab.h"

#include <cstring>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace pagoda::kvstore {
namespace {

TEST(Slab, RefusesImpossibleSizes) {
  EXPECT_EQ(Slab::Create(0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Slab::Create(UINT64_MAX).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Slab, ARequestThatWouldWrapWhenRoundedIsRefused) {
  auto slab = *Slab::Create(4096);
  EXPECT_EQ(slab->Allocate(UINT64_MAX), nullptr);
  EXPECT_EQ(slab->Allocate(UINT64_MAX - 254), nullptr);
  EXPECT_EQ(slab->Allocate(4097), nullptr);
  EXPECT_NE(slab->Allocate(4096), nullptr);
}

TEST(Slab, EqualSlotsFillItWithoutLossAndAreReused) {
  auto slab = *Slab::Create(16 * 1024);
  std::vector<std::shared_ptr<Slot>> slots;
  for (int i = 0; i < 16; ++i) slots.push_back(slab->Allocate(1000));
  EXPECT_EQ(slab->used(), slab->bytes());
  EXPECT_EQ(slab->Allocate(1), nullptr);
  std::byte* place = slots[5]->data();
  slots[5] = nullptr;
  slots[5] = slab->Allocate(1000);
  EXPECT_EQ(slots[5]->data(), place);
  slots.clear();
  EXPECT_EQ(slab->used(), 0u);
  EXPECT_NE(slab->Allocate(16 * 1024), nullptr) << "freed neighbours must join";
}

TEST(Slab, ASlotKeepsTheMappingAlive) {
  auto slab = *Slab::Create(4096);
  auto slot = slab->Allocate(100);
  slab = nullptr;
  std::memset(slot->data(), 1, slot->bytes());
  EXPECT_EQ(slot->data()[99], std::byte{1});
}

TEST(Slab, StaysWholeAndSlotsNeverOverlapUnderRandomUse) {
  uint64_t state = RandomId();
  SCOPED_TRACE("seed " + std::to_string(state));
  auto next = [&] { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; };
  auto slab = *Slab::Create(64 * 1024);
  struct Held {
    std::shared_ptr<Slot> slot;
    int mark;
  };
  std::vector<Held> held;
  for (int round = 0; round < 4000; ++round) {
    if (next() % 2 == 0) {
      if (auto slot = slab->Allocate(1 + next() % 5000)) {
        int mark = static_cast<int>(next() % 256);
        std::memset(slot->data(), mark, slot->bytes());
        held.push_back({std::move(slot), mark});
      }
    } else if (!held.empty()) {
      size_t i = next() % held.size();
      for (uint64_t b = 0; b < held[i].slot->bytes(); b += 255) {
        ASSERT_EQ(held[i].slot->data()[b], static_cast<std::byte>(held[i].mark));
      }
      held.erase(held.begin() + static_cast<long>(i));
    }
    ASSERT_TRUE(slab->CheckIntegrity().ok()) << slab->CheckIntegrity();
  }
  held.clear();
  EXPECT_EQ(slab->used(), 0u);
}

}  // namespace
}  // namespace pagoda::kvstore
