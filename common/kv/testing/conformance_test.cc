// A closed breaker and the stores of this folder keep the contract of every BlockStore, as long as
// no fault is chosen.
#include "common/kv/breaker_store.h"
#include "common/kv/testing/block_store_conformance.h"
#include "common/kv/testing/delayed_store.h"
#include "common/kv/testing/faulty_store.h"
#include "common/kv/testing/in_memory_block_store.h"

namespace pagoda::testing {
namespace {

StoreUnderTest InMemory() { return {std::make_shared<InMemoryBlockStore>()}; }

StoreUnderTest Faulty() {
  return {
      std::make_shared<FaultyStore>(std::make_shared<InMemoryBlockStore>(), RandomFaults(1, {}))};
}

StoreUnderTest Delayed() {
  return {std::make_shared<DelayedStore>(std::make_shared<InMemoryBlockStore>(), SystemClock::Get(),
                                         [] { return std::chrono::milliseconds(1); })};
}

StoreUnderTest ClosedBreaker() {
  struct Both {
    InMemoryBlockStore inner;
    BreakerStore breaker{&inner, {}};
  };
  auto both = std::make_shared<Both>();
  return {std::shared_ptr<BlockStore>(both, &both->breaker)};
}

INSTANTIATE_TEST_SUITE_P(Testing, BlockStoreConformance,
                         ::testing::Values(StoreFactory{"in-memory", InMemory},
                                           StoreFactory{"faulty", Faulty},
                                           StoreFactory{"delayed", Delayed},
                                           StoreFactory{"breaker", ClosedBreaker}));

}  // namespace
}  // namespace pagoda::testing
