#include "services/ctl/conversation.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace pagoda::ctl {
namespace {

// Longer than any answer of a full context on a slow CPU; a server that hangs is still noticed.
constexpr auto kAnswerTimeout = std::chrono::hours(1);

}  // namespace

Conversation::Conversation(http::HttpClient client, Options options)
    : client_(std::move(client)), options_(std::move(options)) {
  if (!options_.system.empty()) messages_.push_back({"system", options_.system});
}

std::string Conversation::RequestBody() const {
  nlohmann::ordered_json body = {{"model", "default"},
                                 {"messages", nlohmann::ordered_json::array()},
                                 {"stream", true},
                                 {"stream_options", {{"include_usage", true}}}};
  for (const Message& message : messages_) {
    body["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  if (options_.temperature) body["temperature"] = *options_.temperature;
  if (options_.max_tokens > 0) body["max_tokens"] = options_.max_tokens;
  if (!options_.cache_scope.empty()) body["cache_scope"] = options_.cache_scope;
  // What is not UTF-8 (a terminal in another encoding) must not end the program.
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

StatusOr<Answer> Conversation::Ask(const std::string& message,
                                   std::function<void(std::string_view)> on_text) {
  messages_.push_back({"user", message});
  http::HttpHeaders headers{{"Content-Type", "application/json"}};
  if (!options_.worker.empty()) headers.emplace_back("x-pagoda-worker", options_.worker);
  const Clock* clock = SystemClock::Get();
  AnswerReader reader(clock, std::move(on_text));
  auto ask = [&]() -> StatusOr<Answer> {
    PAGODA_ASSIGN_OR_RETURN(
        http::HttpResponse response,
        client_.PostStream("/v1/chat/completions", RequestBody(), clock->Now() + kAnswerTimeout,
                           headers, [&](std::string_view line) {
                             reader.TakeLine(line);
                             return true;
                           }));
    if (response.status != 200) {
      return absl::InvalidArgumentError(ServerMessage(response.status, response.body));
    }
    return reader.Finish(http::FindHeader(response.headers, "x-pagoda-worker").value_or(""));
  };
  StatusOr<Answer> answer = ask();
  if (answer.ok()) {
    messages_.push_back({"assistant", answer->text});
  } else {
    messages_.pop_back();
  }
  return answer;
}

}  // namespace pagoda::ctl
