// The `pagoda` program: picks the command.
#include <cstdio>
#include <string_view>

#include "common/base/version.h"
#include "services/ctl/command.h"

namespace {

struct Command {
  std::string_view name;
  const char* summary;
  const char* example;
  int (*run)(int argc, const char* const* argv);
};

constexpr Command kCommands[] = {
    {"up", "run a whole cluster on this host", "pagoda up --model model.gguf --workers 2",
     pagoda::ctl::RunUp},
    {"chat", "talk with the model", "pagoda chat \"Why is the sky blue?\"", pagoda::ctl::RunChat},
    {"generate", "continue a prompt as it is", "pagoda generate --prompt \"The sky is\"",
     pagoda::ctl::RunGenerate},
    {"workers", "list the workers", "pagoda workers", pagoda::ctl::RunWorkers},
    {"drain", "send a worker no new requests", "pagoda drain worker-1", pagoda::ctl::RunDrain},
    {"kv", "look into the KV store", "pagoda kv stats", pagoda::ctl::RunKv},
    {"health", "ask a service whether it is ready", "pagoda health 127.0.0.1:7070",
     pagoda::ctl::RunHealth},
};

void PrintHelp(std::FILE* out) {
  std::fputs("pagoda: serve an LLM whose KV cache belongs to the cluster\n\n", out);
  for (const Command& command : kCommands) {
    std::fprintf(out, "  %-9s %s\n            %s\n", command.name.data(), command.summary,
                 command.example);
  }
  std::fputs("\npagoda COMMAND --help explains one of them.\n", out);
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h" || name == "help") {
    PrintHelp(stdout);
    return 0;
  }
  if (name == "--version") {
    std::printf("pagoda %s\n", pagoda::kVersion);
    return 0;
  }
  for (const Command& command : kCommands) {
    if (command.name == name) return command.run(argc - 1, argv + 1);
  }
  if (!name.empty()) std::fprintf(stderr, "pagoda: unknown command \"%s\"\n\n", argv[1]);
  PrintHelp(stderr);
  return 2;
}
