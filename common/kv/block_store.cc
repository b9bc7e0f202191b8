#include "common/kv/block_store.h"

#include <string>

namespace pagoda {

Status CheckCall(const CallContext& context, size_t blocks, TimePoint now) {
  if (context.cancel.stop_requested()) return absl::CancelledError("cancelled by the caller");
  if (now >= context.deadline) return absl::DeadlineExceededError("the deadline has passed");
  if (blocks > kMaxBlocksPerCall) {
    return absl::InvalidArgumentError(std::to_string(blocks) + " blocks in one call, at most " +
                                      std::to_string(kMaxBlocksPerCall));
  }
  return absl::OkStatus();
}

void FailGet(const Status& status, size_t blocks, BlockSink& sink) {
  for (size_t i = 0; i < blocks; ++i) {
    sink.Done(i, {GetOutcome::kFailed, Tier::kNone, status, {}});
  }
  sink.Finished();
}

FindResult FailedFind(const Status& status, size_t blocks) {
  return {status, std::vector<Held>(blocks)};
}

std::vector<PutResult> FailedPut(const Status& status, size_t blocks) {
  return std::vector<PutResult>(blocks, {PutOutcome::kFailed, 0, status});
}

}  // namespace pagoda
