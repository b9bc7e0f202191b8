#include <cstdio>

#include "common/base/flag_set.h"
#include "common/base/logging.h"
#include "common/base/ready_line.h"
#include "common/base/shutdown_signal.h"
#include "services/worker/worker_options.h"
#include "services/worker/worker_server.h"

int main(int argc, char** argv) {
  pagoda::worker::WorkerOptions options;
  pagoda::FlagSet flags("pagoda-worker",
                        "Decodes with paged attention; token ids in, token ids out.\n"
                        "Example: pagoda-worker --model SmolLM2.gguf --router 127.0.0.1:7070 "
                        "--kvstore 127.0.0.1:7200");
  AddFlags(flags, options);
  if (auto status = flags.Parse(argc, argv)) return *status;
  if (options.model.empty()) {
    std::fputs("pagoda-worker: --model FILE is required\n", stderr);
    return 2;
  }
  pagoda::InitLogging(options.name, *pagoda::ParseLogLevel(options.log_level));

  pagoda::ShutdownSignal signal;
  auto server = pagoda::worker::WorkerServer::Start(options, pagoda::PrintReadyLine);
  if (!server.ok()) {
    pagoda::Log(pagoda::LogLevel::kError, "worker cannot start", {{"status", server.status()}});
    return 1;
  }
  signal.Wait();
  (*server)->Shutdown();
  return 0;
}
