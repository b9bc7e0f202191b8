#include "services/router/openai/request_parser.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/rpc/request_limits.h"
#include "services/router/field_error.h"
#include "services/router/openai/json_fields.h"

namespace pagoda::router::openai {
namespace {

using nlohmann::json;

constexpr int64_t kMaxUint32 = UINT32_MAX;
constexpr char kNotBuilt[] = "is not supported yet; leave it out";

// Absent, null, or one of the values that change nothing.
Status RequireNeutral(const JsonFields& fields, std::string_view name,
                      std::initializer_list<json> neutral) {
  const json* value = fields.Find(name);
  if (value == nullptr) return absl::OkStatus();
  for (const json& allowed : neutral) {
    if (*value == allowed) return absl::OkStatus();
  }
  return UnsupportedField(fields.Path(name), kNotBuilt);
}

Status CheckNotBuilt(const JsonFields& fields) {
  PAGODA_RETURN_IF_ERROR(RequireNeutral(fields, "best_of", {1}));
  PAGODA_RETURN_IF_ERROR(RequireNeutral(fields, "logprobs", {false}));
  PAGODA_RETURN_IF_ERROR(RequireNeutral(fields, "top_logprobs", {}));
  PAGODA_RETURN_IF_ERROR(RequireNeutral(fields, "prompt_logprobs", {}));
  PAGODA_RETURN_IF_ERROR(RequireNeutral(fields, "echo", {false}));
  PAGODA_RETURN_IF_ERROR(RequireNeutral(fields, "suffix", {""}));
  PAGODA_RETURN_IF_ERROR(RequireNeutral(fields, "tools", {json::array()}));
  PAGODA_RETURN_IF_ERROR(RequireNeutral(fields, "tool_choice", {"none", "auto"}));
  PAGODA_RETURN_IF_ERROR(RequireNeutral(fields, "functions", {json::array()}));
  PAGODA_RETURN_IF_ERROR(RequireNeutral(fields, "function_call", {"none", "auto"}));
  PAGODA_RETURN_IF_ERROR(RequireNeutral(fields, "response_format", {json{{"type", "text"}}}));
  PAGODA_RETURN_IF_ERROR(
      RequireNeutral(fields, "modalities", {json::array(), json::array({"text"})}));
  PAGODA_RETURN_IF_ERROR(RequireNeutral(fields, "retention", {}));
  return absl::OkStatus();
}

// A number in [min, max]. NaN and infinities do not exist in JSON.
StatusOr<std::optional<float>> ReadNumber(const JsonFields& fields, std::string_view name,
                                          double min, double max) {
  PAGODA_ASSIGN_OR_RETURN(auto value, fields.Number(name));
  if (!value) return std::optional<float>();
  if (!(*value >= min && *value <= max)) {
    return InvalidField(fields.Path(name), json(*value).dump() + " is not between " +
                                               json(min).dump() + " and " + json(max).dump());
  }
  return std::optional<float>(static_cast<float>(*value));
}

// {"token id": bias}, as OpenAI's.
Status ReadLogitBias(const JsonFields& fields, v1::SamplingParams* sampling) {
  const json* biases = fields.Find("logit_bias");
  if (biases == nullptr) return absl::OkStatus();
  if (!biases->is_object()) {
    return InvalidField("logit_bias", TypeOf(*biases) + " is not an object");
  }
  const JsonFields entries(*biases, "logit_bias.");
  for (const auto& [key, value] : biases->items()) {
    uint32_t token = 0;
    auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (error != std::errc() || end != key.data() + key.size()) {
      return InvalidField("logit_bias", Quote(key) + " is not a token id");
    }
    PAGODA_ASSIGN_OR_RETURN(auto bias, ReadNumber(entries, key, -100, 100));
    if (bias) (*sampling->mutable_logit_bias())[token] = *bias;
  }
  return absl::OkStatus();
}

Status ReadPenalties(const JsonFields& fields, v1::SamplingParams* sampling) {
  PAGODA_ASSIGN_OR_RETURN(auto presence, ReadNumber(fields, "presence_penalty", -2, 2));
  sampling->set_presence_penalty(presence.value_or(0));
  PAGODA_ASSIGN_OR_RETURN(auto frequency, ReadNumber(fields, "frequency_penalty", -2, 2));
  sampling->set_frequency_penalty(frequency.value_or(0));
  PAGODA_ASSIGN_OR_RETURN(auto repetition, ReadNumber(fields, "repetition_penalty", 0.01, 2));
  if (repetition) sampling->set_repetition_penalty(*repetition);
  return ReadLogitBias(fields, sampling);
}

Status ReadSampling(const JsonFields& fields, v1::SamplingParams* sampling) {
  PAGODA_ASSIGN_OR_RETURN(auto temperature, ReadNumber(fields, "temperature", 0, 2));
  if (temperature) sampling->set_temperature(*temperature);
  PAGODA_ASSIGN_OR_RETURN(auto top_p, fields.Number("top_p"));
  if (top_p && !(*top_p > 0 && *top_p <= 1)) {
    return InvalidField("top_p", json(*top_p).dump() + " is not over 0 and up to 1");
  }
  if (top_p) sampling->set_top_p(std::max(static_cast<float>(*top_p), 1e-30f));
  PAGODA_ASSIGN_OR_RETURN(auto top_k, fields.Int("top_k", -1, INT32_MAX));
  if (top_k && *top_k > 0) sampling->set_top_k(static_cast<uint32_t>(*top_k));  // -1, 0: all
  PAGODA_ASSIGN_OR_RETURN(auto min_p, ReadNumber(fields, "min_p", 0, 1));
  sampling->set_min_p(min_p.value_or(0));
  PAGODA_RETURN_IF_ERROR(ReadPenalties(fields, sampling));
  PAGODA_ASSIGN_OR_RETURN(auto seed, fields.Int("seed", INT64_MIN, INT64_MAX));
  if (seed) sampling->set_seed(static_cast<uint64_t>(*seed));
  return absl::OkStatus();
}

// A text or an array of texts; an empty text says nothing.
Status ReadStopStrings(const JsonFields& fields, v1::StopConditions* stop) {
  const json* value = fields.Find("stop");
  if (value == nullptr) return absl::OkStatus();
  const json texts = value->is_array() ? *value : json::array({*value});
  for (const json& text : texts) {
    if (!text.is_string()) {
      return InvalidField("stop", TypeOf(text) + " is not a string or an array of strings");
    }
    if (text != "") stop->add_stop(text.get<std::string>());
  }
  return absl::OkStatus();
}

Status ReadStop(const JsonFields& fields, v1::StopConditions* stop) {
  PAGODA_ASSIGN_OR_RETURN(auto max_tokens, fields.Int("max_tokens", 1, kMaxUint32));
  PAGODA_ASSIGN_OR_RETURN(auto completion, fields.Int("max_completion_tokens", 1, kMaxUint32));
  if (completion) max_tokens = completion;
  if (max_tokens) stop->set_max_tokens(static_cast<uint32_t>(*max_tokens));
  PAGODA_ASSIGN_OR_RETURN(auto min_tokens, fields.Int("min_tokens", 0, kMaxUint32));
  stop->set_min_tokens(static_cast<uint32_t>(min_tokens.value_or(0)));
  PAGODA_ASSIGN_OR_RETURN(auto ignore_eos, fields.Bool("ignore_eos"));
  stop->set_ignore_eos(ignore_eos.value_or(false));
  PAGODA_RETURN_IF_ERROR(ReadStopStrings(fields, stop));
  const json* ids = fields.Find("stop_token_ids");
  if (ids == nullptr) return absl::OkStatus();
  if (!ids->is_array()) return InvalidField("stop_token_ids", TypeOf(*ids) + " is not an array");
  for (const json& id : *ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > UINT32_MAX) {
      return InvalidField("stop_token_ids",
                          (id.is_number() ? id.dump() : TypeOf(id)) + " is not a token id");
    }
    stop->add_stop_token_ids(id.get<uint32_t>());
  }
  return absl::OkStatus();
}

Status ReadCacheScope(const JsonFields& fields, v1::CacheScope* scope) {
  PAGODA_ASSIGN_OR_RETURN(auto name, fields.String("cache_scope"));
  if (!name || *name == "tenant") {
    scope->set_kind(v1::CacheScope::TENANT);
  } else if (*name == "shared") {
    scope->set_kind(v1::CacheScope::SHARED);
  } else if (*name == "none") {
    scope->set_kind(v1::CacheScope::NONE);
  } else {
    return InvalidField("cache_scope", Quote(*name) + " is not one of none, tenant, shared");
  }
  return absl::OkStatus();
}

// What both APIs have in common; the prompt is added by the caller.
StatusOr<v1::GenerateRequest> ReadCommon(const JsonFields& fields, CompletionRequest* out) {
  v1::GenerateRequest request;
  PAGODA_ASSIGN_OR_RETURN(auto model, fields.String("model"));
  request.set_model(model.value_or(""));
  PAGODA_RETURN_IF_ERROR(CheckNotBuilt(fields));
  PAGODA_RETURN_IF_ERROR(ReadSampling(fields, request.mutable_sampling()));
  PAGODA_RETURN_IF_ERROR(ReadStop(fields, request.mutable_stop()));
  PAGODA_RETURN_IF_ERROR(ReadCacheScope(fields, request.mutable_cache_scope()));
  PAGODA_ASSIGN_OR_RETURN(auto n, fields.Int("n", 1, rpc::kMaxChoices));
  if (n) out->n = static_cast<uint32_t>(*n);
  request.set_n(out->n);
  PAGODA_ASSIGN_OR_RETURN(auto priority,
                          fields.Int("priority", rpc::kMinPriority, rpc::kMaxPriority));
  request.set_priority(static_cast<int32_t>(priority.value_or(0)));

  PAGODA_ASSIGN_OR_RETURN(auto return_ids, fields.Bool("return_token_ids"));
  out->return_token_ids = return_ids.value_or(false);
  PAGODA_ASSIGN_OR_RETURN(auto stream, fields.Bool("stream"));
  out->stream = stream.value_or(false);
  const json* options = fields.Find("stream_options");
  if (options == nullptr) return request;
  if (!out->stream) return InvalidField("stream_options", "only allowed with stream: true");
  if (!options->is_object()) {
    return InvalidField("stream_options", TypeOf(*options) + " is not an object");
  }
  PAGODA_ASSIGN_OR_RETURN(auto usage,
                          JsonFields(*options, "stream_options.").Bool("include_usage"));
  out->include_usage = usage.value_or(false);
  return request;
}

// A string, null (an assistant's turn that was a tool call), or a list of text parts.
StatusOr<std::string> ReadContent(const JsonFields& message) {
  const json* content = message.Find("content");
  std::string field = message.Path("content");
  if (content == nullptr) return std::string();
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) {
    return InvalidField(field, TypeOf(*content) + " is not a string or an array of parts");
  }
  std::string text;
  for (size_t i = 0; i < content->size(); ++i) {
    const json& part = (*content)[i];
    std::string path = field + "[" + std::to_string(i) + "]";
    if (!part.is_object()) return InvalidField(path, TypeOf(part) + " is not an object");
    JsonFields fields(part, path + ".");
    PAGODA_ASSIGN_OR_RETURN(auto type, fields.String("type"));
    if (!type) return InvalidField(path + ".type", "missing");
    if (*type != "text") return UnsupportedField(path + ".type", Quote(*type) + " is not text");
    PAGODA_ASSIGN_OR_RETURN(auto part_text, fields.String("text"));
    if (!part_text) return InvalidField(path + ".text", "missing");
    text += *part_text;
  }
  return text;
}

Status ReadMessages(const JsonFields& fields, v1::ChatMessages* chat) {
  const json* messages = fields.Find("messages");
  if (messages == nullptr) return InvalidField("messages", "missing");
  if (!messages->is_array())
    return InvalidField("messages", TypeOf(*messages) + " is not an array");
  if (messages->empty()) return InvalidField("messages", "empty; at least 1 is needed");
  for (size_t i = 0; i < messages->size(); ++i) {
    const json& message = (*messages)[i];
    std::string path = "messages[" + std::to_string(i) + "]";
    if (!message.is_object()) return InvalidField(path, TypeOf(message) + " is not an object");
    JsonFields message_fields(message, path + ".");
    PAGODA_ASSIGN_OR_RETURN(auto role, message_fields.String("role"));
    if (!role) return InvalidField(path + ".role", "missing");
    PAGODA_RETURN_IF_ERROR(RequireNeutral(message_fields, "tool_calls", {}));
    v1::ChatMessage* out = chat->add_messages();
    out->set_role(*role);
    PAGODA_ASSIGN_OR_RETURN(*out->mutable_content(), ReadContent(message_fields));
  }
  return absl::OkStatus();
}

Status ReadIds(const json& ids, const std::string& field, v1::TokenIds* out) {
  if (ids.empty()) return InvalidField(field, "empty");
  for (size_t i = 0; i < ids.size(); ++i) {
    const json& id = ids[i];
    if (!id.is_number_unsigned() || id.get<uint64_t>() > UINT32_MAX) {
      return InvalidField(field + "[" + std::to_string(i) + "]",
                          (id.is_number() ? id.dump() : TypeOf(id)) + " is not a token id");
    }
    out->add_ids(id.get<uint32_t>());
  }
  return absl::OkStatus();
}

// One prompt: a string or an array of ids.
Status ReadPrompt(const json& prompt, const std::string& field, v1::GenerateRequest* request) {
  if (prompt.is_string()) {
    request->set_text(prompt.get<std::string>());
    return absl::OkStatus();
  }
  if (prompt.is_array()) return ReadIds(prompt, field, request->mutable_tokens());
  return InvalidField(field, TypeOf(prompt) + " is not a string or an array of token ids");
}

Status ReadPrompts(const JsonFields& fields, const v1::GenerateRequest& common,
                   std::vector<v1::GenerateRequest>* out) {
  const json* prompt = fields.Find("prompt");
  if (prompt == nullptr) return InvalidField("prompt", "missing");
  bool several = prompt->is_array() && !prompt->empty() && !(*prompt)[0].is_number();
  if (!several) {
    out->push_back(common);
    return ReadPrompt(*prompt, "prompt", &out->back());
  }
  if (prompt->size() > kMaxPrompts) {
    return InvalidField("prompt", std::to_string(prompt->size()) +
                                      " prompts are over the limit of " +
                                      std::to_string(kMaxPrompts));
  }
  for (size_t i = 0; i < prompt->size(); ++i) {
    out->push_back(common);
    PAGODA_RETURN_IF_ERROR(
        ReadPrompt((*prompt)[i], "prompt[" + std::to_string(i) + "]", &out->back()));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<CompletionRequest> ParseChatRequest(std::string_view body) {
  PAGODA_ASSIGN_OR_RETURN(json object, ParseJsonObject(body));
  JsonFields fields(object);
  CompletionRequest result;
  PAGODA_ASSIGN_OR_RETURN(v1::GenerateRequest request, ReadCommon(fields, &result));
  PAGODA_RETURN_IF_ERROR(ReadMessages(fields, request.mutable_chat()));
  result.prompts.push_back(std::move(request));
  return result;
}

StatusOr<CompletionRequest> ParseCompletionRequest(std::string_view body) {
  PAGODA_ASSIGN_OR_RETURN(json object, ParseJsonObject(body));
  JsonFields fields(object);
  CompletionRequest result;
  PAGODA_ASSIGN_OR_RETURN(v1::GenerateRequest common, ReadCommon(fields, &result));
  PAGODA_RETURN_IF_ERROR(ReadPrompts(fields, common, &result.prompts));
  if (result.prompts.size() * result.n > kMaxPrompts) {
    return InvalidField("n", std::to_string(result.n) + " choices for each of " +
                                 std::to_string(result.prompts.size()) +
                                 " prompts are over the limit of " + std::to_string(kMaxPrompts));
  }
  return result;
}

}  // namespace pagoda::router::openai
