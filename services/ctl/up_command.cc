// `pagoda up`: a whole cluster on this host, in the foreground.
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/base/cpu_count.h"
#include "common/base/logging.h"
#include "services/ctl/child_process.h"
#include "services/ctl/cluster.h"
#include "services/ctl/command.h"
#include "services/ctl/flag_routing.h"
#include "services/ctl/thread_share.h"

namespace pagoda::ctl {
namespace {

// More workers than this on one host is a typing mistake.
constexpr int kMaxWorkers = 64;
// A model of tens of gigabytes from a slow disk; what really hangs is still noticed.
constexpr int kDefaultStartTimeoutSeconds = 300;
constexpr int kMaxStartTimeoutSeconds = 24 * 3600;
// Asking a program for its flags only starts and ends it.
constexpr auto kListFlagsTimeout = std::chrono::seconds(30);

constexpr char kHelp[] =
    R"(pagoda up --model FILE [--workers N] [flags of the services]

Runs a KV store, a router and N workers on this host until Ctrl-C. When all are ready it prints one
line of JSON with the process ids and the addresses ("kvstore" is the one for pagoda kv); logs go
to standard error. A program that dies is restarted after 0.5 s, then 1 s ... 10 s, with the same
flags and addresses.

  --model FILE          the model, a GGUF file (required)
  --workers N           1 to 64, default 1
  --start-timeout S     seconds until everything must be ready, default 300; a restarted program
                        that takes longer is killed and restarted again
  --no-restart          a program that dies stays away: goes on without the store or a worker, ends
                        with status 1 when the router or the last worker is gone
  --grpc-address A, --http-address A
                        where the router listens; the other programs take free ports

Every other flag goes to each program that has it. Unless you say otherwise:
  --ram-bytes 1GiB --kv-cache-bytes 512MiB --kv-offload write_through --kv-load auto
  --allow-placement-override --drain-delay 0 --threads (CPUs - 1) / workers, at least 1
pagoda-router, pagoda-worker and pagoda-kvstore --help show their flags.

Exit status: 0 stopped by Ctrl-C or SIGTERM, 1 not everything became ready, or the cluster broke,
2 wrong usage, also of a flag that a service refuses.

example: pagoda up --model model.gguf --workers 2 --kv-cache-bytes 1GiB
)";

std::string ProgramFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

const char* FromEnvironment(std::string_view flag) {
  std::string name = "PAGODA_";
  for (char c : flag) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  const char* value = std::getenv(name.c_str());
  return value != nullptr && *value != '\0' ? value : nullptr;
}

int UsageError(const Status& status) {
  std::fprintf(stderr, "pagoda up: %s\npagoda up --help shows the flags.\n",
               std::string(status.message()).c_str());
  return 2;
}

int Failure(std::string_view message, const Status& status) {
  Log(LogLevel::kError, message, {{"reason", std::string(status.message())}});
  return 1;
}

StatusOr<FlagRules> AskPrograms(const std::string& folder) {
  FlagRules rules;
  rules.own = {{"workers", FlagKind::kValue},
               {"start-timeout", FlagKind::kValue},
               {"restart", FlagKind::kSwitch}};
  rules.only = {{"grpc-address", kRouterProgram}, {"http-address", kRouterProgram}};
  const std::string own = "is set by `pagoda up` itself";
  rules.reserved = {{"name", own},
                    {"router", own},
                    {"kvstore", own},
                    {"config", "belongs to one program, the others would refuse its keys"}};
  rules.defaults = {{"ram-bytes", "1GiB", ""},
                    {"kv-cache-bytes", "512MiB", ""},
                    {"kv-offload", "write_through", ""},
                    {"kv-load", "auto", ""},
                    {"allow-placement-override", "", ""},
                    {"drain-delay", "0", kWorkerProgram}};  // the router is told at once
  for (const char* program : {kStoreProgram, kRouterProgram, kWorkerProgram}) {
    PAGODA_ASSIGN_OR_RETURN(std::string text,
                            CaptureOutput(folder + "/" + program, {"--list-flags"},
                                          SystemClock::Get()->Now() + kListFlagsTimeout));
    StatusOr<FlagKinds> kinds = ParseFlagList(text);
    if (!kinds.ok()) return Annotate(kinds.status(), std::string(program) + " --list-flags");
    rules.programs[program] = *std::move(kinds);
  }
  return rules;
}

// One of up's own numbers: command line, else environment, else `fallback`.
StatusOr<int> OwnNumber(const RoutedFlags& routed, const std::string& name, int fallback, int max) {
  auto given = routed.own.find(name);
  const char* variable = FromEnvironment(name);
  if (given == routed.own.end() && variable == nullptr) return fallback;
  std::string text = given != routed.own.end() ? given->second : variable;
  int number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > max) {
    return absl::InvalidArgumentError("--" + name + ": \"" + text +
                                      "\" is not a number from 1 to " + std::to_string(max));
  }
  return number;
}

// One of up's own switches, in the same way.
StatusOr<bool> OwnSwitch(const RoutedFlags& routed, const std::string& name, bool fallback) {
  auto given = routed.own.find(name);
  const char* variable = FromEnvironment(name);
  if (given == routed.own.end() && variable == nullptr) return fallback;
  std::string text = given != routed.own.end() ? given->second : variable;
  if (text != "true" && text != "false") {
    return absl::InvalidArgumentError("--" + name + ": \"" + text + "\" is not true or false");
  }
  return text == "true";
}

Status CheckModel(const RoutedFlags& routed) {
  std::optional<std::string> model;
  if (const char* variable = FromEnvironment("model")) model = variable;
  for (const auto& [program, line] : routed.programs) {
    auto flag = std::find(line.begin(), line.end(), "--model");
    if (flag != line.end()) model = *(flag + 1);
  }
  if (!model) return absl::InvalidArgumentError("--model FILE is required");
  if (access(model->c_str(), R_OK) != 0) {
    return absl::NotFoundError("--model: cannot read \"" + *model + "\"");
  }
  return absl::OkStatus();
}

StatusOr<Cluster::Options> ClusterOptions(const std::vector<std::string>& arguments,
                                          FlagRules rules, const std::string& folder) {
  auto in_environment = [](std::string_view flag) { return FromEnvironment(flag) != nullptr; };
  PAGODA_ASSIGN_OR_RETURN(RoutedFlags routed, RouteFlags(arguments, rules, in_environment));
  Cluster::Options options;
  options.folder = folder;
  PAGODA_ASSIGN_OR_RETURN(options.workers, OwnNumber(routed, "workers", 1, kMaxWorkers));
  PAGODA_ASSIGN_OR_RETURN(
      int seconds,
      OwnNumber(routed, "start-timeout", kDefaultStartTimeoutSeconds, kMaxStartTimeoutSeconds));
  options.start_timeout = std::chrono::seconds(seconds);
  PAGODA_ASSIGN_OR_RETURN(options.restart, OwnSwitch(routed, "restart", true));
  PAGODA_RETURN_IF_ERROR(CheckModel(routed));
  // The share depends on the number of workers, which is known only now.
  std::string threads = std::to_string(ThreadShare(UsableCpuCount(), options.workers));
  rules.defaults.push_back({"threads", threads, kWorkerProgram});
  PAGODA_ASSIGN_OR_RETURN(routed, RouteFlags(arguments, rules, in_environment));
  options.store_flags = routed.programs[kStoreProgram];
  options.router_flags = routed.programs[kRouterProgram];
  options.worker_flags = routed.programs[kWorkerProgram];
  return options;
}

// Until a signal or a failure; the exit status.
int RunCluster(Cluster& cluster) {
  Status status = cluster.Start();
  bool ready = status.ok();
  if (ready) {
    std::printf("%s\n", cluster.ReadyText().c_str());
    std::fflush(stdout);
    status = cluster.WaitForEnd();
  }
  if (absl::IsCancelled(status)) {
    Log(LogLevel::kInfo, "stopping");
    cluster.Stop();
    return 0;
  }
  int exit_status = Failure(ready ? "the cluster broke" : "the cluster is not ready", status);
  cluster.Stop();
  return absl::IsInvalidArgument(status) ? 2 : exit_status;
}

}  // namespace

int RunUp(int argc, const char* const* argv) {
  InitLogging("up", LogLevel::kInfo);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (std::find_if(arguments.begin(), arguments.end(), [](const std::string& argument) {
        return argument == "--help" || argument == "-h";
      }) != arguments.end()) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  std::string folder = ProgramFolder();
  StatusOr<FlagRules> rules = AskPrograms(folder);
  if (!rules.ok()) return Failure("cannot start the cluster", rules.status());
  StatusOr<Cluster::Options> options = ClusterOptions(arguments, *std::move(rules), folder);
  // The command line was right; the cluster can just not be had.
  if (absl::IsNotFound(options.status())) {
    return Failure("the cluster is not ready", options.status());
  }
  if (!options.ok()) return UsageError(options.status());
  Cluster cluster(*std::move(options));
  return RunCluster(cluster);
}

}  // namespace pagoda::ctl
