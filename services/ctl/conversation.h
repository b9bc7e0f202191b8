// The messages of one chat.
//
// Concurrency: used by one thread.
#ifndef PAGODA_SERVICES_CTL_CONVERSATION_H_
#define PAGODA_SERVICES_CTL_CONVERSATION_H_

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/http/http_client.h"
#include "services/ctl/answer.h"
#include "services/ctl/answer_request.h"

namespace pagoda::ctl {

class Conversation {
 public:
  // An empty `system`: no system message.
  Conversation(http::HttpClient client, AnswerOptions options, const std::string& system = "");

  // Adds the user's message and asks for the answer, which comes piece by piece through `on_text`.
  // After an error the conversation is as it was before. Errors: those of RequestAnswer.
  StatusOr<Answer> Ask(const std::string& message, OnText on_text);

 private:
  struct Message {
    std::string role;
    std::string content;
  };

  http::HttpClient client_;
  AnswerOptions options_;
  std::vector<Message> messages_;
};

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_CONVERSATION_H_
