// `pagoda chat`: talks with the model through the router.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "common/base/flag_set.h"
#include "services/ctl/command.h"
#include "services/ctl/conversation.h"

namespace pagoda::ctl {
namespace {

int UsageError(const std::string& message) {
  std::fprintf(stderr, "pagoda chat: %s\n", message.c_str());
  return 2;
}

int AskOnce(Conversation& conversation, const AnswerFlags& flags, const std::string& message) {
  return ShowAnswer("pagoda chat", flags,
                    [&](OnText on_text) { return conversation.Ask(message, std::move(on_text)); });
}

int Interact(Conversation& conversation, const AnswerFlags& flags) {
  std::fprintf(stderr, "Type a message and Enter; Ctrl-D ends.\n");
  for (std::string line; std::fputs("> ", stderr), std::getline(std::cin, line);) {
    if (!line.empty()) AskOnce(conversation, flags, line);
  }
  std::fputs("\n", stderr);
  return 0;
}

}  // namespace

int RunChat(int argc, const char* const* argv) {
  std::string message, system, system_file;
  AnswerFlags answer;
  FlagSet flags("pagoda chat",
                "Talks with the model. With a message, or something else than a terminal on "
                "standard input, asks once and ends.");
  flags.AddPositional("message", "what to ask", &message, /*required=*/false);
  flags.Add("system", "system prompt", &system);
  flags.Add("system-file", "file with the system prompt, instead of --system", &system_file);
  answer.AddTo(flags, "the rest of the context");
  if (std::optional<int> status = flags.Parse(argc, argv)) return *status;
  StatusOr<http::HttpClient> client = http::HttpClient::Create(answer.http);
  if (!client.ok()) return UsageError("--http: " + std::string(client.status().message()));
  if (!system_file.empty() && !system.empty()) {
    return UsageError("--system and --system-file: only one of them");
  }
  if (!system_file.empty()) {
    std::ifstream file(system_file, std::ios::binary);
    if (!file) return UsageError("--system-file: cannot read \"" + system_file + "\"");
    system.assign(std::istreambuf_iterator<char>(file), {});
  }
  Conversation conversation(*std::move(client), answer.Options(), system);
  if (message.empty() && isatty(STDIN_FILENO)) return Interact(conversation, answer);
  if (message.empty()) {
    message.assign(std::istreambuf_iterator<char>(std::cin), {});
    if (message.empty()) return UsageError("no message, and nothing on standard input");
  }
  return AskOnce(conversation, answer, message);
}

}  // namespace pagoda::ctl
