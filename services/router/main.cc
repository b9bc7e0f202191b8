#include <cstdio>
#include <string>

#include "common/base/address.h"
#include "common/base/flag_set.h"
#include "common/base/logging.h"
#include "common/base/ready_line.h"
#include "common/base/shutdown_signal.h"
#include "services/router/router_server.h"

int main(int argc, char** argv) {
  pagoda::router::RouterServer::Options options;
  std::string log_level = "info";
  pagoda::FlagSet flags("pagoda-router",
                        "OpenAI HTTP and gRPC in front of workers: text, placement, failover.\n"
                        "Example: pagoda-router --model SmolLM2.gguf");
  flags.Add("model", "the GGUF file whose tokenizer and chat template to use", &options.model);
  flags.Add("served-model-name", "name clients ask for (repeatable); default: the file's stem",
            &options.served_names);
  flags.AddChecked("grpc-address", "gRPC listener; port 0 takes a free one", &options.grpc_address,
                   pagoda::CheckListenAddress);
  flags.AddChecked("http-address", "HTTP listener; port 0 takes a free one", &options.http_address,
                   pagoda::CheckListenAddress);
  flags.AddChecked("kvstore", "the cluster's KV store, HOST:PORT (placement will ask it; not yet)",
                   &options.kvstore, [](const std::string& address) {
                     return pagoda::ParseHostPort(address).status();
                   });
  flags.AddChoice("policy", "how a worker is chosen", &options.policy,
                  {"predicted", "round_robin", "least_loaded"});
  flags.AddSwitch("allow-placement-override", "let clients name a worker (header x-pagoda-worker)",
                  &options.allow_placement_override);
  flags.AddMilliseconds("frozen-after-ms",
                        "a worker that has not reported for so long is frozen: its streams move",
                        &options.health.frozen_after);
  flags.AddMilliseconds(
      "stuck-after-ms",
      "a worker that has work and made no step for so long is stuck: its streams move",
      &options.health.stuck_after);
  flags.AddMilliseconds("resume-wait-ms",
                        "how long a broken answer waits for a worker that can continue it",
                        &options.limits.resume_wait);
  flags.AddMilliseconds(
      "first-token-limit-ms",
      "longest wait for a worker's first token, beside 10 times the predicted one",
      &options.limits.first_token);
  flags.AddMilliseconds("between-tokens-limit-ms",
                        "longest wait for a worker's next token before the answer moves",
                        &options.limits.between_tokens);
  flags.AddChecked("log-level", "debug, info, warning or error", &log_level,
                   [](const std::string& name) { return pagoda::ParseLogLevel(name).status(); });
  if (auto status = flags.Parse(argc, argv)) return *status;
  if (options.model.empty()) {
    std::fputs("pagoda-router: --model FILE is required\n", stderr);
    return 2;
  }
  pagoda::InitLogging("router", *pagoda::ParseLogLevel(log_level));

  pagoda::ShutdownSignal signal;
  auto server = pagoda::router::RouterServer::Start(options);
  if (!server.ok()) {
    pagoda::Log(pagoda::LogLevel::kError, "router cannot start", {{"status", server.status()}});
    return 1;
  }
  pagoda::PrintReadyLine((*server)->grpc_address(), (*server)->http_address());
  signal.Wait();
  (*server)->Stop();
  return 0;
}
