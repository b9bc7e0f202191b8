// How an answer is asked for and shown: what `pagoda chat` and `pagoda generate` have in common.
//
// Concurrency: plain values and functions, used by one thread.
#ifndef PAGODA_SERVICES_CTL_ANSWER_REQUEST_H_
#define PAGODA_SERVICES_CTL_ANSWER_REQUEST_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/flag_set.h"
#include "common/base/status.h"
#include "common/http/http_client.h"
#include "services/ctl/answer.h"

namespace pagoda::ctl {

// Gets each piece of an answer as it comes.
using OnText = std::function<void(std::string_view)>;

struct AnswerOptions {
  std::optional<double> temperature;  // absent: the server's default
  std::optional<int64_t> seed;        // absent: the server's choice
  int max_tokens = 0;                 // 0: the server's default
  std::string cache_scope;            // empty: the server's default
  std::string worker;                 // empty: where the router likes
};

// The flags of AnswerOptions, and those that say whom to ask and how to show the answer.
struct AnswerFlags {
  std::string http = "http://127.0.0.1:8080";
  std::string temperature;
  std::string seed;
  std::string output = "text";
  bool stats = true;
  AnswerOptions options;

  // `most_tokens` says what no --max-tokens means. `this` must outlive `flags`.
  void AddTo(FlagSet& flags, const std::string& most_tokens);
  // `options` with temperature and seed. REQUIRES: `flags` were parsed.
  AnswerOptions Options() const;
};

// POSTs `input` (messages or a prompt) with `options` to `path`, and streams the answer. Errors:
// UNAVAILABLE when nobody listens, INVALID_ARGUMENT with the server's words when it refuses, and
// those of AnswerReader.
StatusOr<Answer> RequestAnswer(const http::HttpClient& client, const std::string& path,
                               nlohmann::ordered_json input, const AnswerOptions& options,
                               OnText on_text);

// Shows the answer that `ask` fetches: its text as it comes and the status line on standard error,
// or all as one JSON object. Returns the exit status: 1 when there is no whole answer; the reason
// is then on standard error, after `command`.
int ShowAnswer(const char* command, const AnswerFlags& flags,
               const std::function<StatusOr<Answer>(OnText)>& ask);

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_ANSWER_REQUEST_H_
