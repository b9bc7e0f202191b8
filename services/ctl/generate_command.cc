// `pagoda generate`: continues a prompt as it is, without chat template.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "common/base/flag_set.h"
#include "services/ctl/answer_request.h"
#include "services/ctl/command.h"

namespace pagoda::ctl {
namespace {

int UsageError(const std::string& message) {
  std::fprintf(stderr, "pagoda generate: %s\n", message.c_str());
  return 2;
}

// All of standard input but the newline that shells and editors end it with.
std::string ReadPrompt() {
  std::string prompt(std::istreambuf_iterator<char>(std::cin), {});
  if (!prompt.empty() && prompt.back() == '\n') prompt.pop_back();
  return prompt;
}

}  // namespace

int RunGenerate(int argc, const char* const* argv) {
  std::string prompt;
  AnswerFlags answer;
  FlagSet flags("pagoda generate",
                "Continues a prompt as it is: no chat template, no conversation. The prompt is "
                "--prompt or standard input (without a newline at its end); its continuation goes "
                "to standard output.\n"
                "Example: pagoda generate --prompt \"The sky is\" --max-tokens 32");
  flags.Add("prompt", "the text to continue; standard input if not given", &prompt);
  answer.AddTo(flags, "the server's default, 16");
  if (std::optional<int> status = flags.Parse(argc, argv)) return *status;
  StatusOr<http::HttpClient> client = http::HttpClient::Create(answer.http);
  if (!client.ok()) return UsageError("--http: " + std::string(client.status().message()));
  if (prompt.empty() && !isatty(STDIN_FILENO)) prompt = ReadPrompt();
  if (prompt.empty()) return UsageError("no --prompt, and nothing on standard input");
  return ShowAnswer("pagoda generate", answer, [&](OnText on_text) {
    return RequestAnswer(*client, "/v1/completions", {{"prompt", prompt}}, answer.Options(),
                         std::move(on_text));
  });
}

}  // namespace pagoda::ctl
