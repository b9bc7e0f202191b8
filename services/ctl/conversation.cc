#include "services/ctl/conversation.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace pagoda::ctl {

Conversation::Conversation(http::HttpClient client, AnswerOptions options,
                           const std::string& system)
    : client_(std::move(client)), options_(std::move(options)) {
  if (!system.empty()) messages_.push_back({"system", system});
}

StatusOr<Answer> Conversation::Ask(const std::string& message, OnText on_text) {
  messages_.push_back({"user", message});
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  for (const Message& each : messages_) {
    messages.push_back({{"role", each.role}, {"content", each.content}});
  }
  StatusOr<Answer> answer =
      RequestAnswer(client_, "/v1/chat/completions", {{"messages", std::move(messages)}}, options_,
                    std::move(on_text));
  if (answer.ok()) {
    messages_.push_back({"assistant", answer->text});
  } else {
    messages_.pop_back();
  }
  return answer;
}

}  // namespace pagoda::ctl
