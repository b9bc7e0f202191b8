// The JSON of answers: whole responses and server-sent events, as OpenAI's clients read them, with
// vLLM's token ids and Pagoda's usage.
//
// Concurrency: immutable; any thread.
#ifndef PAGODA_SERVICES_ROUTER_OPENAI_RESPONSE_WRITER_H_
#define PAGODA_SERVICES_ROUTER_OPENAI_RESPONSE_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pagoda/v1/types.pb.h"
#include "services/router/served_model.h"

namespace pagoda::router::openai {

enum class Api { kChat, kCompletions };
// As the label of metrics.
inline std::string_view ApiName(Api api) { return api == Api::kChat ? "chat" : "completions"; }

// One choice, complete.
struct Choice {
  std::string text;
  std::vector<uint32_t> token_ids;
  std::vector<uint32_t> prompt_ids;
  v1::FinishReason finish = v1::FINISH_REASON_UNSPECIFIED;
};

class ResponseWriter {
 public:
  struct Options {
    Api api = Api::kChat;
    std::string request_id;  // hex
    std::string model;
    int64_t created_seconds = 0;
    std::string fingerprint;
    bool include_usage = false;
    bool return_token_ids = false;
  };

  explicit ResponseWriter(Options options) : options_(std::move(options)) {}

  std::string Whole(std::span<const Choice> choices, const v1::Usage& usage) const;

  // Events of a stream ("data: {...}\n\n"). The first of a choice carries the role (chat only) and
  // the prompt's ids if they are wanted; it is empty when there is nothing to say.
  std::string FirstEvent(size_t index, std::span<const uint32_t> prompt_ids) const;
  std::string TextEvent(size_t index, std::string_view text, std::span<const uint32_t> ids) const;
  std::string FinishEvent(size_t index, v1::FinishReason finish) const;
  // Empty unless include_usage.
  std::string UsageEvent(const v1::Usage& usage) const;
  static std::string DoneEvent() { return "data: [DONE]\n\n"; }
  // `error`: the JSON of http::ErrorJson.
  static std::string ErrorEvent(const std::string& error) { return "data: " + error + "\n\n"; }

 private:
  std::string Head(bool chunk) const;
  std::string Event(std::string_view choice, std::string_view top_level = "") const;

  const Options options_;
};

// The sum of the usage of several choices, for one answer.
void AddUsage(const v1::Usage& more, v1::Usage* sum);

// The body of /v1/models.
std::string ModelsJson(const ServedModel& model, uint32_t max_model_len);

}  // namespace pagoda::router::openai

#endif  // PAGODA_SERVICES_ROUTER_OPENAI_RESPONSE_WRITER_H_
