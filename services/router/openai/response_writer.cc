#include "services/router/openai/response_writer.h"

#include <algorithm>

#include "common/base/logging.h"

namespace pagoda::router::openai {
namespace {

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

std::string Ids(std::span<const uint32_t> ids) {
  std::string out = "[";
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(ids[i]);
  }
  return out + "]";
}

std::string FinishName(v1::FinishReason finish) {
  return finish == v1::LENGTH ? "\"length\"" : "\"stop\"";
}

std::string Field(const char* name, uint64_t value) {
  return std::string("\"") + name + "\":" + std::to_string(value);
}

std::string UsageJson(const v1::Usage& usage) {
  // Of the prompt: after a resume, output tokens may have been found as well.
  uint32_t cached =
      std::min(usage.local() + usage.ram() + usage.disk(),
               usage.prompt_tokens() - std::min(usage.prompt_tokens(), usage.computed()));
  std::string json =
      "{" + Field("prompt_tokens", usage.prompt_tokens()) + "," +
      Field("completion_tokens", usage.completion_tokens()) + "," +
      Field("total_tokens", uint64_t{usage.prompt_tokens()} + usage.completion_tokens()) +
      ",\"prompt_tokens_details\":{" + Field("cached_tokens", cached) + "},\"pagoda\":{" +
      Field("computed", usage.computed()) + "," + Field("local", usage.local()) + "," +
      Field("ram", usage.ram()) + "," + Field("disk", usage.disk()) + "," +
      Field("recomputed", usage.recomputed()) + "," + Field("pushed", usage.pushed()) + "," +
      Field("resumed", usage.resumed()) + "," + Field("retries", usage.retries()) +
      ",\"workers\":[";
  for (int i = 0; i < usage.workers_size(); ++i) {
    json += (i > 0 ? "," : "") + Quoted(usage.workers(i));
  }
  return json + "]}}";
}

std::string Index(size_t index) { return "{\"index\":" + std::to_string(index); }

}  // namespace

std::string ResponseWriter::Head(bool chunk) const {
  bool chat = options_.api == Api::kChat;
  std::string json = "{\"id\":\"";
  json += (chat ? "chatcmpl-" : "cmpl-") + options_.request_id;
  json += "\",\"object\":\"";
  json += !chat ? "text_completion" : chunk ? "chat.completion.chunk" : "chat.completion";
  json += "\",\"created\":" + std::to_string(options_.created_seconds);
  json += ",\"model\":" + Quoted(options_.model);
  json += ",\"system_fingerprint\":";
  json += options_.fingerprint.empty() ? "null" : Quoted(options_.fingerprint);
  return json;
}

std::string ResponseWriter::Whole(std::span<const Choice> choices, const v1::Usage& usage) const {
  bool chat = options_.api == Api::kChat;
  std::string json = Head(false) + ",\"choices\":[";
  for (size_t i = 0; i < choices.size(); ++i) {
    const Choice& choice = choices[i];
    json += (i > 0 ? "," : "") + Index(i);
    if (chat) {
      json += ",\"message\":{\"role\":\"assistant\",\"content\":" + Quoted(choice.text) +
              ",\"refusal\":null}";
    } else {
      json += ",\"text\":" + Quoted(choice.text);
    }
    json += ",\"logprobs\":null,\"finish_reason\":" + FinishName(choice.finish);
    if (options_.return_token_ids) {
      json += ",\"token_ids\":" + Ids(choice.token_ids);
      if (!chat) json += ",\"prompt_token_ids\":" + Ids(choice.prompt_ids);
    }
    json += "}";
  }
  json += "]";
  if (chat && options_.return_token_ids && !choices.empty()) {
    json += ",\"prompt_token_ids\":" + Ids(choices.front().prompt_ids);
  }
  return json + ",\"usage\":" + UsageJson(usage) + "}";
}

std::string ResponseWriter::Event(std::string_view choice, std::string_view top_level) const {
  std::string event = "data: " + Head(true) + ",\"choices\":[";
  event += choice;
  event += "]";
  event += top_level;
  if (options_.include_usage) event += ",\"usage\":null";
  return event + "}\n\n";
}

std::string ResponseWriter::FirstEvent(size_t index, std::span<const uint32_t> prompt_ids) const {
  std::string ids = options_.return_token_ids ? ",\"prompt_token_ids\":" + Ids(prompt_ids) : "";
  if (options_.api == Api::kChat) {
    return Event(Index(index) +
                     ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"
                     "\"finish_reason\":null}",
                 ids);
  }
  if (ids.empty()) return "";
  return Event(Index(index) + ",\"text\":\"\",\"logprobs\":null,\"finish_reason\":null" + ids +
               "}");
}

std::string ResponseWriter::TextEvent(size_t index, std::string_view text,
                                      std::span<const uint32_t> ids) const {
  std::string choice = Index(index);
  choice += options_.api == Api::kChat ? ",\"delta\":{\"content\":" + Quoted(text) + "}"
                                       : ",\"text\":" + Quoted(text);
  choice += ",\"logprobs\":null,\"finish_reason\":null";
  if (options_.return_token_ids) choice += ",\"token_ids\":" + Ids(ids);
  return Event(choice + "}");
}

std::string ResponseWriter::FinishEvent(size_t index, v1::FinishReason finish) const {
  std::string choice = Index(index);
  choice += options_.api == Api::kChat ? ",\"delta\":{}" : ",\"text\":\"\"";
  choice += ",\"logprobs\":null,\"finish_reason\":" + FinishName(finish) + "}";
  return Event(choice);
}

std::string ResponseWriter::UsageEvent(const v1::Usage& usage) const {
  if (!options_.include_usage) return "";
  return "data: " + Head(true) + ",\"choices\":[],\"usage\":" + UsageJson(usage) + "}\n\n";
}

void AddUsage(const v1::Usage& more, v1::Usage* sum) {
  sum->set_prompt_tokens(sum->prompt_tokens() + more.prompt_tokens());
  sum->set_completion_tokens(sum->completion_tokens() + more.completion_tokens());
  sum->set_computed(sum->computed() + more.computed());
  sum->set_local(sum->local() + more.local());
  sum->set_ram(sum->ram() + more.ram());
  sum->set_disk(sum->disk() + more.disk());
  sum->set_recomputed(sum->recomputed() + more.recomputed());
  sum->set_pushed(sum->pushed() + more.pushed());
  sum->set_resumed(sum->resumed() + more.resumed());
  sum->set_retries(sum->retries() + more.retries());
  for (const std::string& worker : more.workers()) {
    const auto& known = sum->workers();
    if (std::find(known.begin(), known.end(), worker) == known.end()) sum->add_workers(worker);
  }
}

std::string ModelsJson(const ServedModel& model, uint32_t max_model_len) {
  std::string json = "{\"object\":\"list\",\"data\":[";
  for (size_t i = 0; i < model.names().size(); ++i) {
    json += (i > 0 ? ",{\"id\":" : "{\"id\":") + Quoted(model.names()[i]);
    json += ",\"object\":\"model\",\"created\":" + std::to_string(model.created_seconds()) +
            ",\"owned_by\":\"pagoda\",\"max_model_len\":" + std::to_string(max_model_len) + "}";
  }
  return json + "]}";
}

}  // namespace pagoda::router::openai
