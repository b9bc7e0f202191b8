// One answer, of a chat or to a prompt: what a stream of server-sent events says, and when.
//
// Concurrency: plain values and one reader, each used by one thread.
#ifndef PAGODA_SERVICES_CTL_ANSWER_H_
#define PAGODA_SERVICES_CTL_ANSWER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace pagoda::ctl {

struct Answer {
  std::string text;
  std::string finish_reason;
  std::string worker;  // who sent the first token
  std::string usage;   // the server's usage object as JSON, empty if it sent none
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  // Prompt tokens by where their KV came from.
  int64_t computed = 0;
  int64_t local = 0;
  int64_t ram = 0;
  int64_t disk = 0;
  std::optional<Duration> first_text;  // from the request to the first text; the TTFT seen here
  Duration last_text{};                // from the request to the last text

  // Tokens after the first, over the time they took; nothing for fewer than two.
  std::optional<double> TokensPerSecond() const;

  // "worker-0 | prompt 1200 = 48 computed + 0 local + 1152 RAM + 0 disk | TTFT 0.21 s | 44.0
  // tokens/s"
  std::string StatusLine() const;
  // One JSON object with all of it.
  std::string ToJson() const;
};

// The error message in an HTTP error's body, else the body itself.
std::string ServerMessage(int http_status, const std::string& body);

// Reads the lines of one streamed completion.
class AnswerReader {
 public:
  // The request counts as sent now. `on_text` gets each piece of text as it comes.
  AnswerReader(const Clock* clock, std::function<void(std::string_view)> on_text)
      : clock_(clock), sent_(clock->Now()), on_text_(std::move(on_text)) {}

  void TakeLine(std::string_view line);

  // After the last line. Errors: INTERNAL with the server's words when it reported an error in the
  // stream; DATA_LOSS when the stream was cut or is not what it should be.
  StatusOr<Answer> Finish(std::string_view worker);

 private:
  Status TakeEvent(std::string_view json);

  const Clock* clock_;
  TimePoint sent_;
  std::function<void(std::string_view)> on_text_;
  Answer answer_;
  Status status_;
  bool done_ = false;
};

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_ANSWER_H_
