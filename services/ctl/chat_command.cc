// `pagoda chat`: talks with the model through the router.
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "common/base/flag_set.h"
#include "services/ctl/command.h"
#include "services/ctl/conversation.h"

namespace pagoda::ctl {
namespace {

struct ChatFlags {
  std::string http = "http://127.0.0.1:8080";
  std::string message;
  std::string system_file;
  std::string temperature;
  bool stats = true;
  bool json = false;
  Conversation::Options conversation;
};

std::optional<double> ParseTemperature(const std::string& text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= 2)) {
    return std::nullopt;
  }
  return value;
}

std::optional<int> ParseFlags(int argc, const char* const* argv, ChatFlags& chat) {
  FlagSet flags("pagoda chat",
                "Talks with the model. With a message, or something else than a terminal on "
                "standard input, asks once and ends.");
  flags.AddPositional("message", "what to ask", &chat.message, /*required=*/false);
  flags.Add("http", "the router's URL", &chat.http);
  flags.Add("system", "system prompt", &chat.conversation.system);
  flags.Add("system-file", "file with the system prompt", &chat.system_file);
  flags.Add("max-tokens", "most tokens of an answer, 0: the rest of the context",
            &chat.conversation.max_tokens, 0, 1 << 30);
  flags.AddChecked(
      "temperature", "0 (greedy) to 2; the server's default if not given", &chat.temperature,
      [](const std::string& text) -> Status {
        if (ParseTemperature(text)) return absl::OkStatus();
        return absl::InvalidArgumentError("\"" + text + "\" is not a number from 0 to 2");
      });
  flags.Add("worker", "the worker that shall answer (needs --allow-placement-override)",
            &chat.conversation.worker);
  flags.AddChoice("cache-scope", "who may share the KV cache of this chat",
                  &chat.conversation.cache_scope, {"none", "tenant", "shared"});
  flags.AddSwitch("stats", "after each answer, where its prompt came from and how fast it was",
                  &chat.stats);
  flags.AddSwitch("json", "print each answer as one JSON object", &chat.json);
  return flags.Parse(argc, argv);
}

int UsageError(const std::string& message) {
  std::fprintf(stderr, "pagoda chat: %s\n", message.c_str());
  return 2;
}

void PrintStats(const Answer& answer) {
  bool dim = isatty(STDERR_FILENO) && std::getenv("NO_COLOR") == nullptr;
  std::fprintf(stderr, "%s%s%s\n", dim ? "\x1b[2m" : "", answer.StatusLine().c_str(),
               dim ? "\x1b[0m" : "");
}

// Asks and prints; false when it did not work.
bool AskOnce(Conversation& conversation, const ChatFlags& flags, const std::string& message) {
  StatusOr<Answer> answer = conversation.Ask(message, [&](std::string_view text) {
    if (flags.json) return;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  });
  if (!flags.json) std::printf("\n");
  if (!answer.ok()) {
    std::fflush(stdout);
    std::fprintf(stderr, "pagoda chat: %s\n", std::string(answer.status().message()).c_str());
    return false;
  }
  if (flags.json) std::printf("%s\n", answer->ToJson().c_str());
  std::fflush(stdout);
  if (flags.stats && !flags.json) PrintStats(*answer);
  return true;
}

int Interact(Conversation& conversation, const ChatFlags& flags) {
  std::fprintf(stderr, "Type a message and Enter; Ctrl-D ends.\n");
  for (std::string line; std::fputs("> ", stderr), std::getline(std::cin, line);) {
    if (!line.empty()) AskOnce(conversation, flags, line);
  }
  std::fputs("\n", stderr);
  return 0;
}

}  // namespace

int RunChat(int argc, const char* const* argv) {
  ChatFlags flags;
  if (std::optional<int> status = ParseFlags(argc, argv, flags)) return *status;
  StatusOr<http::HttpClient> client = http::HttpClient::Create(flags.http);
  if (!client.ok()) return UsageError("--http: " + std::string(client.status().message()));
  if (!flags.temperature.empty()) {
    flags.conversation.temperature = ParseTemperature(flags.temperature);
  }
  if (!flags.system_file.empty()) {
    std::ifstream file(flags.system_file, std::ios::binary);
    if (!file) return UsageError("--system-file: cannot read \"" + flags.system_file + "\"");
    flags.conversation.system.assign(std::istreambuf_iterator<char>(file), {});
  }
  Conversation conversation(*std::move(client), flags.conversation);
  if (flags.message.empty() && isatty(STDIN_FILENO)) return Interact(conversation, flags);
  if (flags.message.empty()) {
    flags.message.assign(std::istreambuf_iterator<char>(std::cin), {});
    if (flags.message.empty()) return UsageError("no message, and nothing on standard input");
  }
  return AskOnce(conversation, flags, flags.message) ? 0 : 1;
}

}  // namespace pagoda::ctl
