#include "services/worker/request_check.h"

#include <span>
#include <string>

#include "services/worker/block_table.h"

namespace pagoda::worker {
namespace {

Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

Status CheckTokenIds(const char* field, std::span<const TokenId> ids, uint32_t vocabulary_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= vocabulary_size) {
      return Invalid(std::string(field) + "[" + std::to_string(i) + "]: " + std::to_string(ids[i]) +
                     " is not below the vocabulary size " + std::to_string(vocabulary_size));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status CheckRequest(const GenerationRequest& request, const RequestLimits& limits) {
  if (request.prompt_ids.empty()) return Invalid("prompt_ids: empty, at least 1 token is needed");
  if (request.max_tokens < 1) return Invalid("max_tokens: 0 is below the least value 1");
  // 64 bits: both come from the client.
  const uint64_t total = uint64_t{request.prompt_ids.size()} + request.max_tokens;
  if (total > static_cast<uint64_t>(limits.max_model_len)) {
    return Invalid("prompt_ids and max_tokens: " + std::to_string(request.prompt_ids.size()) +
                   " + " + std::to_string(request.max_tokens) + " tokens are over the context of " +
                   std::to_string(limits.max_model_len));
  }
  if (request.output_ids.size() >= request.max_tokens) {
    return Invalid("output_ids: " + std::to_string(request.output_ids.size()) +
                   " tokens leave nothing of max_tokens " + std::to_string(request.max_tokens));
  }
  PAGODA_RETURN_IF_ERROR(CheckTokenIds("prompt_ids", request.prompt_ids, limits.vocabulary_size));
  PAGODA_RETURN_IF_ERROR(CheckTokenIds("output_ids", request.output_ids, limits.vocabulary_size));
  PAGODA_RETURN_IF_ERROR(CheckSamplingParams(request.sampling));
  PAGODA_RETURN_IF_ERROR(
      CheckPenaltyParams(request.penalties, limits.vocabulary_size, request.max_tokens));
  const auto kv_tokens = static_cast<int32_t>(total - 1);  // the last token is never computed
  const int32_t blocks = BlocksFor(kv_tokens, limits.block_tokens);
  if (blocks > limits.num_blocks) {
    return absl::OutOfRangeError("prompt_ids and max_tokens: need " + std::to_string(blocks) +
                                 " KV blocks, the pool has " + std::to_string(limits.num_blocks) +
                                 " (raise --kv-cache-bytes)");
  }
  if (limits.max_prefill_tokens > 0 && kv_tokens > limits.max_prefill_tokens) {
    return absl::OutOfRangeError("prompt_ids and max_tokens: " + std::to_string(kv_tokens) +
                                 " tokens are over --max-num-batched-tokens " +
                                 std::to_string(limits.max_prefill_tokens) +
                                 ", and chunked prefill is off");
  }
  return absl::OkStatus();
}

Status CheckBlockKeys(const GenerationRequest& request, std::span<const BlockRef> ours) {
  if (!request.block_keys) return absl::OkStatus();
  const auto& given = *request.block_keys;
  if (given.size() != ours.size()) {
    return Invalid("block_keys: " + std::to_string(given.size()) + " keys, this worker makes " +
                   std::to_string(ours.size()));
  }
  if (!given.empty() && given.back() != ours.back().key) {
    return Invalid("block_keys: the last key differs from this worker's");
  }
  return absl::OkStatus();
}

}  // namespace pagoda::worker
