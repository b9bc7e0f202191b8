#include "services/router/request_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/utf8.h"
#include "common/kv/record.h"
#include "common/rpc/request_limits.h"
#include "services/router/field_error.h"

namespace pagoda::router {
namespace {

// The sampler divides by the temperature; below this it would only find the highest logit anyway.
constexpr float kLeastTemperature = 1e-5f;

constexpr char kNotBuilt[] = "is not supported yet; leave it out";

Status CheckNotBuilt(const v1::GenerateRequest& request) {
  if (request.has_top_logprobs()) return UnsupportedField("top_logprobs", kNotBuilt);
  if (request.has_retention()) return UnsupportedField("retention", kNotBuilt);
  if (request.cache_scope().shared_tokens() > 0) {
    return UnsupportedField("cache_scope.shared_tokens", kNotBuilt);
  }
  return absl::OkStatus();
}

Status CheckToken(std::string_view field, uint32_t id, uint32_t vocabulary) {
  if (id < vocabulary) return absl::OkStatus();
  return InvalidField(field, std::to_string(id) + " is not below the vocabulary's size of " +
                                 std::to_string(vocabulary));
}

Status CheckRange(std::string_view field, float value, float min, float max) {
  if (value >= min && value <= max) return absl::OkStatus();  // not NaN
  return InvalidField(field, absl::StrCat(value, " is not between ", min, " and ", max));
}

Status CheckLogitBias(const v1::SamplingParams& sampling, uint32_t vocabulary) {
  if (sampling.logit_bias_size() > rpc::kMaxLogitBiases) {
    return InvalidField("logit_bias", std::to_string(sampling.logit_bias_size()) +
                                          " tokens are over the limit of " +
                                          std::to_string(rpc::kMaxLogitBiases));
  }
  for (const auto& [token, bias] : sampling.logit_bias()) {
    PAGODA_RETURN_IF_ERROR(CheckToken("logit_bias", token, vocabulary));
    PAGODA_RETURN_IF_ERROR(
        CheckRange("logit_bias", bias, -rpc::kMaxLogitBias, rpc::kMaxLogitBias));
  }
  return absl::OkStatus();
}

Status CheckSampling(const v1::SamplingParams& sampling, uint32_t vocabulary) {
  if (sampling.has_temperature()) {
    PAGODA_RETURN_IF_ERROR(CheckRange("temperature", sampling.temperature(), 0, 2));
  }
  PAGODA_RETURN_IF_ERROR(CheckRange("min_p", sampling.min_p(), 0, 1));
  PAGODA_RETURN_IF_ERROR(CheckRange("presence_penalty", sampling.presence_penalty(),
                                    -rpc::kMaxPenalty, rpc::kMaxPenalty));
  PAGODA_RETURN_IF_ERROR(CheckRange("frequency_penalty", sampling.frequency_penalty(),
                                    -rpc::kMaxPenalty, rpc::kMaxPenalty));
  if (sampling.has_repetition_penalty()) {
    PAGODA_RETURN_IF_ERROR(CheckRange("repetition_penalty", sampling.repetition_penalty(),
                                      rpc::kMinRepetitionPenalty, rpc::kMaxRepetitionPenalty));
  }
  PAGODA_RETURN_IF_ERROR(CheckLogitBias(sampling, vocabulary));
  if (sampling.has_top_p() && !(sampling.top_p() > 0 && sampling.top_p() <= 1)) {
    return InvalidField("top_p", std::to_string(sampling.top_p()) + " is not over 0 and up to 1");
  }
  return absl::OkStatus();
}

Status CheckText(std::string_view field, std::string_view text) {
  size_t valid = Utf8ValidPrefix(text);
  if (valid == text.size()) return absl::OkStatus();
  return InvalidField(field, "not valid UTF-8 at byte " + std::to_string(valid));
}

Status CheckStopStrings(const v1::StopConditions& stop) {
  if (stop.stop_size() > kMaxStopStrings) {
    return InvalidField("stop", std::to_string(stop.stop_size()) + " texts are over the limit of " +
                                    std::to_string(kMaxStopStrings));
  }
  for (const std::string& text : stop.stop()) {
    if (text.empty() || text.size() > kMaxStopStringBytes) {
      return InvalidField("stop", std::to_string(text.size()) + " bytes long; 1 to " +
                                      std::to_string(kMaxStopStringBytes) + " are allowed");
    }
    PAGODA_RETURN_IF_ERROR(CheckText("stop", text));
  }
  return absl::OkStatus();
}

Status CheckRest(const v1::GenerateRequest& request, const ServedModel& model,
                 const PlanLimits& limits) {
  if (request.priority() < rpc::kMinPriority || request.priority() > rpc::kMaxPriority) {
    return InvalidField("priority", std::to_string(request.priority()) + " is not between " +
                                        std::to_string(rpc::kMinPriority) + " and " +
                                        std::to_string(rpc::kMaxPriority));
  }
  if (request.has_n() && (request.n() < 1 || request.n() > rpc::kMaxChoices)) {
    return InvalidField("n", std::to_string(request.n()) + " is not between 1 and " +
                                 std::to_string(rpc::kMaxChoices));
  }
  if (request.tenant().size() > kMaxTenantBytes) {
    return InvalidField("tenant", std::to_string(request.tenant().size()) +
                                      " bytes are over the limit of " +
                                      std::to_string(kMaxTenantBytes));
  }
  if (!v1::CacheScope::Kind_IsValid(request.cache_scope().kind())) {
    return InvalidField("cache_scope", std::to_string(request.cache_scope().kind()) +
                                           " is not one of none, tenant, shared");
  }
  if (!request.worker().empty() && !limits.allow_placement_override) {
    return InvalidField("worker", "this router does not allow placement overrides");
  }
  const auto& stops = request.stop().stop_token_ids();
  if (stops.size() > rpc::kMaxStopTokenIds) {
    return InvalidField("stop_token_ids", std::to_string(stops.size()) +
                                              " ids are over the limit of " +
                                              std::to_string(rpc::kMaxStopTokenIds));
  }
  uint32_t vocabulary = model.text().tokenizer().vocabulary_size();
  for (uint32_t id : stops) PAGODA_RETURN_IF_ERROR(CheckToken("stop_token_ids", id, vocabulary));
  return absl::OkStatus();
}

Status TooLong(std::string_view field, size_t tokens, bool at_least, uint32_t max_tokens,
               uint32_t max_model_len) {
  return InvalidField(field,
                      std::string(at_least ? "at least " : "") + std::to_string(tokens) +
                          " prompt tokens and " + std::to_string(max_tokens) +
                          " output tokens exceed the context of " + std::to_string(max_model_len) +
                          " tokens",
                      "context_length_exceeded");
}

StatusOr<std::vector<uint32_t>> EncodeChat(const v1::ChatMessages& chat, const ServedModel& model,
                                           uint32_t max_model_len) {
  if (chat.messages().empty()) return InvalidField("messages", "empty; at least 1 is needed");
  std::vector<text::ChatMessage> messages;
  size_t bytes = 0;
  for (int i = 0; i < chat.messages_size(); ++i) {
    const v1::ChatMessage& message = chat.messages(i);
    std::string field = "messages[" + std::to_string(i) + "]";
    if (message.role().empty() || message.role().size() > kMaxRoleBytes) {
      return InvalidField(field + ".role", std::to_string(message.role().size()) +
                                               " bytes long; 1 to " +
                                               std::to_string(kMaxRoleBytes) + " are allowed");
    }
    PAGODA_RETURN_IF_ERROR(CheckText(field + ".role", message.role()));
    PAGODA_RETURN_IF_ERROR(CheckText(field + ".content", message.content()));
    bytes += message.content().size();
    messages.push_back({message.role(), message.content()});
  }
  // A hopeless prompt is refused before it costs the time to encode it.
  size_t least = bytes / model.text().tokenizer().longest_token_bytes();
  if (least > max_model_len) return TooLong("messages", least, true, 1, max_model_len);
  auto ids = model.text().EncodeChat(messages, /*add_generation_prompt=*/true);
  if (ids.ok()) return ids;
  return InvalidField("messages", std::string(ids.status().message()));
}

StatusOr<std::vector<uint32_t>> EncodePrompt(const v1::GenerateRequest& request,
                                             const ServedModel& model, uint32_t max_model_len) {
  switch (request.prompt_case()) {
    case v1::GenerateRequest::kText: {
      PAGODA_RETURN_IF_ERROR(CheckText("prompt", request.text()));
      if (request.text().empty()) return InvalidField("prompt", "empty");
      size_t least = request.text().size() / model.text().tokenizer().longest_token_bytes();
      if (least > max_model_len) return TooLong("prompt", least, true, 1, max_model_len);
      auto ids = model.text().EncodePrompt(request.text());
      if (ids.ok()) return ids;
      return InvalidField("prompt", std::string(ids.status().message()));
    }
    case v1::GenerateRequest::kChat:
      return EncodeChat(request.chat(), model, max_model_len);
    case v1::GenerateRequest::kTokens: {
      const auto& ids = request.tokens().ids();
      if (ids.empty()) return InvalidField("prompt", "empty");
      uint32_t vocabulary = model.text().tokenizer().vocabulary_size();
      for (int i = 0; i < ids.size(); ++i) {
        if (ids[i] >= vocabulary) {
          return InvalidField(
              "prompt", "token id " + std::to_string(ids[i]) + " at position " + std::to_string(i) +
                            " is not below the vocabulary's size of " + std::to_string(vocabulary));
        }
      }
      return std::vector<uint32_t>(ids.begin(), ids.end());
    }
    case v1::GenerateRequest::PROMPT_NOT_SET:
      break;
  }
  return InvalidField("prompt", "missing");
}

// The limit of output tokens, explicit or by default.
StatusOr<uint32_t> MaxTokens(const v1::GenerateRequest& request, size_t prompt_tokens,
                             uint32_t max_model_len) {
  const char* field = request.has_chat() ? "messages" : "prompt";
  if (prompt_tokens == 0) return InvalidField(field, "gives no token");
  if (prompt_tokens >= max_model_len) {
    return TooLong(field, prompt_tokens, false, 1, max_model_len);
  }
  uint32_t rest = max_model_len - static_cast<uint32_t>(prompt_tokens);
  if (!request.stop().has_max_tokens()) {
    return request.has_chat() ? rest : std::min(rest, kDefaultMaxTokens);
  }
  uint32_t max_tokens = request.stop().max_tokens();
  if (max_tokens < 1) return InvalidField("max_tokens", "0 is below the least value 1");
  if (max_tokens > rest) {
    return TooLong("max_tokens", prompt_tokens, false, max_tokens, max_model_len);
  }
  return max_tokens;
}

CacheScope ScopeOf(const v1::CacheScope& scope) {
  switch (scope.kind()) {
    case v1::CacheScope::NONE:
      return CacheScope::None();
    case v1::CacheScope::SHARED:
      return CacheScope::Shared();
    default:
      return CacheScope::Tenant();
  }
}

}  // namespace

StatusOr<RequestPlan> PlanRequest(const v1::GenerateRequest& request,
                                  const std::shared_ptr<const ServedModel>& model,
                                  const PlanLimits& limits) {
  RequestPlan plan;
  PAGODA_ASSIGN_OR_RETURN(plan.model_name, model->Resolve(request.model()));
  PAGODA_RETURN_IF_ERROR(CheckNotBuilt(request));
  PAGODA_RETURN_IF_ERROR(
      CheckSampling(request.sampling(), model->text().tokenizer().vocabulary_size()));
  PAGODA_RETURN_IF_ERROR(CheckStopStrings(request.stop()));
  PAGODA_RETURN_IF_ERROR(CheckRest(request, *model, limits));
  PAGODA_ASSIGN_OR_RETURN(plan.prompt_ids, EncodePrompt(request, *model, limits.max_model_len));
  PAGODA_ASSIGN_OR_RETURN(plan.max_tokens,
                          MaxTokens(request, plan.prompt_ids.size(), limits.max_model_len));
  plan.min_tokens = request.stop().min_tokens();
  if (plan.min_tokens > plan.max_tokens) {
    return InvalidField("min_tokens", std::to_string(plan.min_tokens) + " is over max_tokens " +
                                          std::to_string(plan.max_tokens));
  }

  plan.request_id = RandomHex128();
  plan.model = model;
  plan.sampling = request.sampling();
  if (!plan.sampling.has_temperature()) plan.sampling.set_temperature(1);
  if (plan.sampling.temperature() < kLeastTemperature) plan.sampling.set_temperature(0);
  if (!plan.sampling.has_top_p()) plan.sampling.set_top_p(1);
  if (!plan.sampling.has_seed()) plan.sampling.set_seed(RandomId());
  plan.stop_token_ids.assign(request.stop().stop_token_ids().begin(),
                             request.stop().stop_token_ids().end());
  plan.ignore_eos = request.stop().ignore_eos();
  plan.stop_strings.assign(request.stop().stop().begin(), request.stop().stop().end());
  plan.scope = ScopeOf(request.cache_scope());
  plan.scope_field = request.cache_scope();
  plan.tenant = request.tenant();
  plan.priority = request.priority();
  plan.pinned_worker = request.worker();
  plan.return_token_ids = request.return_token_ids();
  return plan;
}

}  // namespace pagoda::router
