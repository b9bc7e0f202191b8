#include "services/ctl/answer_request.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

namespace pagoda::ctl {
namespace {

// Longer than any answer of a full context on a slow CPU; a server that hangs is still noticed.
constexpr auto kAnswerTimeout = std::chrono::hours(1);

// All of `text` as a number; nothing if it is none.
template <typename Number>
std::optional<Number> ParseNumber(const std::string& text) {
  Number value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Status CheckTemperature(const std::string& text) {
  std::optional<double> value = ParseNumber<double>(text);
  if (value && *value >= 0 && *value <= 2) return absl::OkStatus();
  return absl::InvalidArgumentError("\"" + text + "\" is not a number from 0 to 2");
}

Status CheckSeed(const std::string& text) {
  if (ParseNumber<int64_t>(text)) return absl::OkStatus();
  return absl::InvalidArgumentError("\"" + text + "\" is not a whole number of 64 bits");
}

void PrintStats(const Answer& answer) {
  bool dim = isatty(STDERR_FILENO) && std::getenv("NO_COLOR") == nullptr;
  std::fprintf(stderr, "%s%s%s\n", dim ? "\x1b[2m" : "", answer.StatusLine().c_str(),
               dim ? "\x1b[0m" : "");
}

}  // namespace

void AnswerFlags::AddTo(FlagSet& flags, const std::string& most_tokens) {
  flags.Add("http", "the router's URL", &http);
  flags.Add("max-tokens", "most tokens of an answer, 0: " + most_tokens, &options.max_tokens, 0,
            1 << 30);
  flags.AddChecked("temperature", "0 (greedy) to 2; the server's default if not given",
                   &temperature, CheckTemperature);
  flags.AddChecked("seed", "repeats what a temperature over 0 drew; random if not given", &seed,
                   CheckSeed);
  flags.Add("worker", "the worker that shall answer (needs --allow-placement-override)",
            &options.worker);
  flags.AddChoice("cache-scope", "who may share the KV cache of the prompt", &options.cache_scope,
                  {"none", "tenant", "shared"});
  flags.AddSwitch("stats", "after the answer, where its prompt came from and how fast it was",
                  &stats);
  flags.AddChoice("output", "the text as it comes, or one JSON object with all of it", &output,
                  {"text", "json"});
}

AnswerOptions AnswerFlags::Options() const {
  AnswerOptions all = options;
  if (!temperature.empty()) all.temperature = ParseNumber<double>(temperature);
  if (!seed.empty()) all.seed = ParseNumber<int64_t>(seed);
  return all;
}

StatusOr<Answer> RequestAnswer(const http::HttpClient& client, const std::string& path,
                               nlohmann::ordered_json input, const AnswerOptions& options,
                               OnText on_text) {
  nlohmann::ordered_json body = {{"model", "default"}};
  body.update(input);
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  if (options.temperature) body["temperature"] = *options.temperature;
  if (options.seed) body["seed"] = *options.seed;
  if (options.max_tokens > 0) body["max_tokens"] = options.max_tokens;
  if (!options.cache_scope.empty()) body["cache_scope"] = options.cache_scope;
  http::HttpHeaders headers{{"Content-Type", "application/json"}};
  if (!options.worker.empty()) headers.emplace_back("x-pagoda-worker", options.worker);

  const Clock* clock = SystemClock::Get();
  AnswerReader reader(clock, std::move(on_text));
  // What is not UTF-8 (a terminal in another encoding) must not end the program.
  std::string text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  PAGODA_ASSIGN_OR_RETURN(http::HttpResponse response,
                          client.PostStream(path, std::move(text), clock->Now() + kAnswerTimeout,
                                            headers, [&](std::string_view line) {
                                              reader.TakeLine(line);
                                              return true;
                                            }));
  if (response.status != 200) {
    return absl::InvalidArgumentError(ServerMessage(response.status, response.body));
  }
  return reader.Finish(http::FindHeader(response.headers, "x-pagoda-worker").value_or(""));
}

int ShowAnswer(const char* command, const AnswerFlags& flags,
               const std::function<StatusOr<Answer>(OnText)>& ask) {
  const bool json = flags.output == "json";
  bool begun = false;
  StatusOr<Answer> answer = ask([&](std::string_view text) {
    if (json) return;
    begun = true;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  });
  if (json && answer.ok()) std::printf("%s\n", answer->ToJson().c_str());
  if (!json && (begun || answer.ok())) std::printf("\n");
  std::fflush(stdout);
  if (!answer.ok()) {
    std::fprintf(stderr, "%s: %s\n", command, std::string(answer.status().message()).c_str());
    return 1;
  }
  if (flags.stats && !json) PrintStats(*answer);
  return 0;
}

}  // namespace pagoda::ctl
