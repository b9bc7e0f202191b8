#include "services/ctl/answer.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace pagoda::ctl {
namespace {

using json = nlohmann::ordered_json;  // usage is passed on as it came

// What is missing or of another type counts as absent: servers differ in what they send.
int64_t Number(const json& object, const char* name) {
  auto field = object.is_object() ? object.find(name) : object.end();
  return field != object.end() && field->is_number_integer() ? field->get<int64_t>() : 0;
}

std::string Text(const json& object, const char* name) {
  auto field = object.is_object() ? object.find(name) : object.end();
  return field != object.end() && field->is_string() ? field->get<std::string>() : "";
}

json Member(const json& object, const char* name) {
  auto field = object.is_object() ? object.find(name) : object.end();
  return field != object.end() ? *field : json();
}

void TakeUsage(const json& usage, Answer& answer) {
  answer.usage = usage.dump();
  answer.prompt_tokens = Number(usage, "prompt_tokens");
  answer.completion_tokens = Number(usage, "completion_tokens");
  json tiers = Member(usage, "pagoda");
  answer.computed = Number(tiers, "computed");
  answer.local = Number(tiers, "local");
  answer.ram = Number(tiers, "ram");
  answer.disk = Number(tiers, "disk");
}

}  // namespace

std::optional<double> Answer::TokensPerSecond() const {
  if (!first_text || completion_tokens < 2 || last_text <= *first_text) return std::nullopt;
  return static_cast<double>(completion_tokens - 1) / ToSeconds(last_text - *first_text);
}

std::string Answer::StatusLine() const {
  std::string line = worker.empty() ? "unknown worker" : worker;
  char part[160];
  if (!usage.empty()) {
    std::snprintf(
        part, sizeof(part), " | prompt %lld = %lld computed + %lld local + %lld RAM + %lld disk",
        static_cast<long long>(prompt_tokens), static_cast<long long>(computed),
        static_cast<long long>(local), static_cast<long long>(ram), static_cast<long long>(disk));
    line += part;
  }
  if (first_text) {
    std::snprintf(part, sizeof(part), " | TTFT %.2f s", ToSeconds(*first_text));
    line += part;
  }
  if (std::optional<double> rate = TokensPerSecond()) {
    std::snprintf(part, sizeof(part), " | %.1f tokens/s", *rate);
    line += part;
  }
  return line;
}

std::string Answer::ToJson() const {
  json object = {{"text", text},
                 {"finish_reason", finish_reason},
                 {"worker", worker},
                 {"ttft_seconds", nullptr},
                 {"tokens_per_second", nullptr},
                 {"usage", nullptr}};
  if (first_text) object["ttft_seconds"] = ToSeconds(*first_text);
  if (std::optional<double> rate = TokensPerSecond()) object["tokens_per_second"] = *rate;
  if (!usage.empty()) object["usage"] = json::parse(usage);
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string ServerMessage(int http_status, const std::string& body) {
  json object = json::parse(body, nullptr, /*allow_exceptions=*/false);
  std::string message = Text(Member(object, "error"), "message");
  if (message.empty()) message = body.substr(0, 500);
  return message + " (HTTP " + std::to_string(http_status) + ")";
}

Status AnswerReader::TakeEvent(std::string_view text) {
  json event = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) {
    return absl::DataLossError("not a JSON event: \"" + std::string(text.substr(0, 200)) + "\"");
  }
  if (json error = Member(event, "error"); !error.is_null()) {
    std::string message = Text(error, "message");
    return absl::InternalError(message.empty() ? error.dump() : message);
  }
  if (json usage = Member(event, "usage"); usage.is_object()) TakeUsage(usage, answer_);
  json choices = Member(event, "choices");
  if (!choices.is_array() || choices.empty()) return absl::OkStatus();
  std::string finish_reason = Text(choices[0], "finish_reason");
  if (!finish_reason.empty()) answer_.finish_reason = finish_reason;
  // A chat's text is in `delta.content`, a completion's in `text`.
  std::string content = Text(Member(choices[0], "delta"), "content");
  if (content.empty()) content = Text(choices[0], "text");
  if (content.empty()) return absl::OkStatus();
  answer_.last_text = clock_->Now() - sent_;
  if (!answer_.first_text) answer_.first_text = answer_.last_text;
  answer_.text += content;
  on_text_(content);
  return absl::OkStatus();
}

void AnswerReader::TakeLine(std::string_view line) {
  constexpr std::string_view kData = "data:";
  if (done_ || !status_.ok() || line.substr(0, kData.size()) != kData) return;
  line.remove_prefix(kData.size());
  if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  if (line == "[DONE]") {
    done_ = true;
  } else {
    status_ = TakeEvent(line);
  }
}

StatusOr<Answer> AnswerReader::Finish(std::string_view worker) {
  PAGODA_RETURN_IF_ERROR(status_);
  if (!done_) return absl::DataLossError("the answer was cut off");
  answer_.worker = worker;
  return std::move(answer_);
}

}  // namespace pagoda::ctl
