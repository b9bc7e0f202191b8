#include "common/kv/block_store_admin.h"

namespace pagoda {

StatusOr<PurgeResult> BlockStoreAdmin::Purge(const PurgeSelector&) {
  return absl::UnimplementedError("this store cannot purge");
}

Status BlockStoreAdmin::Drain(TimePoint) {
  return absl::UnimplementedError("this store cannot drain");
}

StatusOr<ScrubResult> BlockStoreAdmin::Scrub(uint64_t) {
  return absl::UnimplementedError("this store cannot scrub");
}

}  // namespace pagoda
