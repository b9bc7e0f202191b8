// The messages of one chat, and the request that asks for the next answer.
//
// Concurrency: used by one thread.
#ifndef PAGODA_SERVICES_CTL_CONVERSATION_H_
#define PAGODA_SERVICES_CTL_CONVERSATION_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/http/http_client.h"
#include "services/ctl/answer.h"

namespace pagoda::ctl {

class Conversation {
 public:
  struct Options {
    std::string system;                 // empty: no system message
    std::optional<double> temperature;  // absent: the server's default
    int max_tokens = 0;                 // 0: the rest of the context
    std::string cache_scope;            // empty: the server's default
    std::string worker;                 // empty: where the router likes
  };

  Conversation(http::HttpClient client, Options options);

  // Adds the user's message and asks for the answer, which comes piece by piece through `on_text`.
  // After an error the conversation is as it was before. Errors: UNAVAILABLE when nobody listens,
  // INVALID_ARGUMENT with the server's words when it refuses, and those of AnswerReader.
  StatusOr<Answer> Ask(const std::string& message, std::function<void(std::string_view)> on_text);

 private:
  struct Message {
    std::string role;
    std::string content;
  };

  std::string RequestBody() const;

  http::HttpClient client_;
  Options options_;
  std::vector<Message> messages_;
};

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_CONVERSATION_H_
