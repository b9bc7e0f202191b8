// Every tier does what a BlockStore must do.
#include "common/kv/testing/block_store_conformance.h"
#include "services/kvstore/disk_tier.h"
#include "services/kvstore/ram_tier.h"
#include "services/kvstore/testing/temp_folder.h"
#include "services/kvstore/tiered_store.h"

namespace pagoda::testing {
namespace {

constexpr uint64_t kRamBytes = 16 << 20;
constexpr uint64_t kDiskBytes = 64 << 20;

// Keeps `tier` with what it stands on, and checks it while it lives.
template <typename Holder>
StoreUnderTest Hold(std::shared_ptr<Holder> holder) {
  auto* tier = holder->tier.get();
  return {std::shared_ptr<BlockStore>(holder, tier), [holder = std::weak_ptr(holder)] {
            auto held = holder.lock();
            return held == nullptr ? absl::OkStatus() : held->tier->CheckIntegrity();
          }};
}

StoreUnderTest MakeRamTier() {
  struct Holder {
    std::unique_ptr<kvstore::RamTier> tier = *kvstore::RamTier::Create({.bytes = kRamBytes});
  };
  return Hold(std::make_shared<Holder>());
}

StoreUnderTest MakeDiskTier() {
  struct Holder {
    TempFolder folder;
    std::unique_ptr<kvstore::DiskTier> tier = *kvstore::DiskTier::Open(
        {.db = {.folder = folder.path, .bytes = kDiskBytes, .min_free_bytes = 0}});
  };
  return Hold(std::make_shared<Holder>());
}

StoreUnderTest MakeTieredStore(uint64_t ram_bytes) {
  struct Holder {
    TempFolder folder;
    std::unique_ptr<kvstore::TieredStore> tier;
  };
  auto holder = std::make_shared<Holder>();
  holder->tier = *kvstore::TieredStore::Create(
      {.bytes = ram_bytes},
      *kvstore::DiskTier::Open(
          {.db = {.folder = holder->folder.path, .bytes = kDiskBytes, .min_free_bytes = 0}}));
  return Hold(std::move(holder));
}

INSTANTIATE_TEST_SUITE_P(
    Tiers, BlockStoreConformance,
    ::testing::Values(StoreFactory{"ram", MakeRamTier}, StoreFactory{"disk", MakeDiskTier},
                      StoreFactory{"tiered", [] { return MakeTieredStore(kRamBytes); }}));

}  // namespace
}  // namespace pagoda::testing
