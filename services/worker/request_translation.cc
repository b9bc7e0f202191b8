#include "services/worker/request_translation.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/kv/identity.h"
#include "common/kv/record.h"
#include "common/rpc/request_limits.h"

namespace pagoda::worker {
namespace {

// Without authentication there is nobody to keep a secret from; the router makes its keys so, too.
constexpr std::string_view kClusterSecret;

Status OutOfRange(std::string_view field, double value, std::string_view limit) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(field), " is ", value, ", must be ", std::string(limit)));
}

Status NotBuilt(std::string_view field) {
  return absl::UnimplementedError(absl::StrCat(std::string(field), " is not supported yet"));
}

Status RefuseWhatIsNotBuilt(const v1::WorkerGenerateRequest& message) {
  if (message.has_top_logprobs()) return NotBuilt("top_logprobs");
  if (message.retention().method_case() != v1::Retention::METHOD_NOT_SET) {
    return NotBuilt("retention");
  }
  if (message.cache_scope().shared_tokens() != 0) return NotBuilt("cache_scope.shared_tokens");
  return absl::OkStatus();
}

StatusOr<SamplingParams> Sampling(const v1::WorkerGenerateRequest& message) {
  const v1::SamplingParams& from = message.sampling();
  SamplingParams to;
  to.temperature = from.has_temperature() ? from.temperature() : 1.0f;
  if (!(to.temperature >= 0 && to.temperature <= 2)) {
    return OutOfRange("sampling.temperature", to.temperature, "0 to 2");
  }
  if (to.temperature < kMinTemperature) to.temperature = 0;  // greedy in all but name
  to.top_p = from.has_top_p() ? from.top_p() : 1.0f;
  if (!(to.top_p > 0 && to.top_p <= 1)) {
    return OutOfRange("sampling.top_p", to.top_p, "over 0 and at most 1");
  }
  if (from.top_k() > INT32_MAX) return OutOfRange("sampling.top_k", from.top_k(), "at most 2^31-1");
  to.top_k = static_cast<int32_t>(from.top_k());
  to.min_p = from.min_p();
  if (!from.has_seed()) return absl::InvalidArgumentError("sampling.seed is not set");
  to.seed = from.seed();
  to.choice = message.choice_index();
  return to;
}

StatusOr<PenaltyParams> ToPenalties(const v1::WorkerGenerateRequest& message) {
  const v1::SamplingParams& from = message.sampling();
  if (from.logit_bias().size() > rpc::kMaxLogitBiases) {
    return OutOfRange("sampling.logit_bias", static_cast<double>(from.logit_bias().size()),
                      absl::StrCat("at most ", rpc::kMaxLogitBiases, " tokens"));
  }
  PenaltyParams to;
  to.min_tokens = message.stop().min_tokens();
  to.logit_bias.assign(from.logit_bias().begin(), from.logit_bias().end());
  if (from.has_repetition_penalty()) to.repetition_penalty = from.repetition_penalty();
  to.frequency_penalty = from.frequency_penalty();
  to.presence_penalty = from.presence_penalty();
  return to;
}

StatusOr<CacheScope> Scope(const v1::CacheScope& scope) {
  switch (scope.kind()) {
    case v1::CacheScope::TENANT:
      return CacheScope::Tenant();
    case v1::CacheScope::SHARED:
      return CacheScope::Shared();
    case v1::CacheScope::NONE:
      return CacheScope::None();
    default:
      return OutOfRange("cache_scope.kind", scope.kind(), "TENANT, SHARED or NONE");
  }
}

StatusOr<std::optional<std::vector<BlockKey>>> BlockKeys(const std::string& packed) {
  if (packed.empty()) return std::optional<std::vector<BlockKey>>();
  if (packed.size() % BlockKey::kBytes != 0) {
    return OutOfRange("block_keys bytes", static_cast<double>(packed.size()), "a multiple of 32");
  }
  std::vector<BlockKey> keys;
  keys.reserve(packed.size() / BlockKey::kBytes);
  for (size_t at = 0; at < packed.size(); at += BlockKey::kBytes) {
    keys.push_back(*BlockKey::FromBytes(std::string_view(packed).substr(at, BlockKey::kBytes)));
  }
  return std::optional(std::move(keys));
}

Status CheckSpace(const std::string& required, const Space& space) {
  if (required.empty() || required == space.view()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("space_required is not this worker's space ", space.ToHex().substr(0, 12)));
}

v1::FinishReason ToProto(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return v1::STOP;
    case FinishReason::kLength:
      return v1::LENGTH;
    case FinishReason::kCancelled:
    case FinishReason::kDeadline:
      return v1::CANCELLED;
    case FinishReason::kError:
      return v1::ERROR;
  }
  return v1::ERROR;
}

}  // namespace

StatusOr<GenerationRequest> FromProto(const v1::WorkerGenerateRequest& message,
                                      const WorkerModel& model) {
  PAGODA_RETURN_IF_ERROR(CheckSpace(message.space_required(), model.space));
  PAGODA_RETURN_IF_ERROR(RefuseWhatIsNotBuilt(message));
  if (message.tenant().size() > kMaxTenantBytes) {
    return OutOfRange("tenant bytes", static_cast<double>(message.tenant().size()),
                      absl::StrCat("at most ", kMaxTenantBytes));
  }
  if (message.stop().stop_token_ids_size() > rpc::kMaxStopTokenIds) {
    return OutOfRange("stop.stop_token_ids", message.stop().stop_token_ids_size(),
                      absl::StrCat("at most ", rpc::kMaxStopTokenIds, " ids"));
  }
  GenerationRequest request;
  request.request_id = message.request_id();
  request.traceparent = message.traceparent();
  request.prompt_ids.assign(message.prompt_ids().begin(), message.prompt_ids().end());
  request.output_ids.assign(message.output_ids().begin(), message.output_ids().end());
  PAGODA_ASSIGN_OR_RETURN(request.sampling, Sampling(message));
  PAGODA_ASSIGN_OR_RETURN(request.penalties, ToPenalties(message));
  if (!message.stop().has_max_tokens()) {
    return absl::InvalidArgumentError("stop.max_tokens is not set");
  }
  request.max_tokens = message.stop().max_tokens();
  request.stop_token_ids.assign(message.stop().stop_token_ids().begin(),
                                message.stop().stop_token_ids().end());
  if (!message.stop().ignore_eos()) {
    request.stop_token_ids.insert(request.stop_token_ids.end(), model.stop_ids.begin(),
                                  model.stop_ids.end());
  }
  PAGODA_ASSIGN_OR_RETURN(request.cache.scope, Scope(message.cache_scope()));
  request.cache.tenant = message.tenant();
  request.cache.tenant_generation = message.tenant_generation();
  request.cache.tenant_namespace = MakeNamespace(kClusterSecret, model.space, message.tenant(),
                                                 message.tenant_generation(), model.weight_epoch);
  request.cache.shared_namespace =
      MakeSharedNamespace(kClusterSecret, model.space, model.weight_epoch);
  PAGODA_ASSIGN_OR_RETURN(request.block_keys, BlockKeys(message.block_keys()));
  request.priority = message.priority();
  request.age = std::chrono::milliseconds(message.age_ms());
  return request;
}

void FillFinish(const GenerationResult& result, v1::WorkerGenerateResponse& message) {
  message.set_finish_reason(ToProto(result.reason));
  FillUsage(result.usage, *message.mutable_usage());
}

void FillUsage(const GenerationUsage& from, v1::Usage& to) {
  to.set_prompt_tokens(from.prompt_tokens);
  to.set_completion_tokens(from.completion_tokens);
  to.set_computed(from.computed);
  to.set_local(from.local);
  to.set_ram(from.ram);
  to.set_disk(from.disk);
  to.set_recomputed(from.recomputed);
  to.set_pushed(from.pushed);
}

}  // namespace pagoda::worker
