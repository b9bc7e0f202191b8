#include "services/ctl/cluster.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace pagoda::ctl {
namespace {

// How long each stage has to end by itself: running answers are cut after that. Three stages stay
// within the 30 s that process managers usually give.
constexpr auto kStopGrace = std::chrono::seconds(5);

constexpr char kStore[] = "kvstore";
constexpr char kRouter[] = "router";

std::vector<std::string> Joined(std::vector<std::string> first,
                                const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

Status Cluster::Start() {
  const std::vector<std::string> free_ports{"--grpc-address", "127.0.0.1:0", "--http-address",
                                            "127.0.0.1:0"};
  TimePoint deadline = SystemClock::Get()->Now() + options_.start_timeout;
  auto file = [&](const char* program) { return options_.folder + "/" + program; };

  PAGODA_RETURN_IF_ERROR(
      supervisor_.Start(kStore, file(kStoreProgram), Joined(free_ports, options_.store_flags)));
  PAGODA_RETURN_IF_ERROR(supervisor_.WaitReady(deadline));
  const std::vector<std::string> dial_store{"--kvstore", supervisor_.addresses(kStore).grpc};

  PAGODA_RETURN_IF_ERROR(
      supervisor_.Start(kRouter, file(kRouterProgram), Joined(dial_store, options_.router_flags)));
  PAGODA_RETURN_IF_ERROR(supervisor_.WaitReady(deadline));
  const std::vector<std::string> dial_both =
      Joined({"--router", supervisor_.addresses(kRouter).grpc}, dial_store);

  for (int i = 0; i < options_.workers; ++i) {
    std::string name = "worker-" + std::to_string(i);
    std::vector<std::string> flags = Joined({"--name", name}, Joined(free_ports, dial_both));
    worker_names_.push_back(name);
    PAGODA_RETURN_IF_ERROR(
        supervisor_.Start(name, file(kWorkerProgram), Joined(flags, options_.worker_flags)));
  }
  return supervisor_.WaitReady(deadline);
}

std::string Cluster::ReadyText() const {
  nlohmann::ordered_json pids;
  pids[kRouter] = supervisor_.pid(kRouter);
  pids[kStore] = supervisor_.pid(kStore);
  for (const std::string& name : worker_names_) pids[name] = supervisor_.pid(name);
  const ReadyLine& router = supervisor_.addresses(kRouter);
  nlohmann::ordered_json line = {{"ready", true},
                                 {"http", "http://" + router.http},
                                 {"grpc", router.grpc},
                                 {"kvstore", supervisor_.addresses(kStore).grpc},
                                 {"pids", pids}};
  return line.dump();
}

Status Cluster::WaitForEnd() {
  while (true) {
    PAGODA_ASSIGN_OR_RETURN(std::string ended, supervisor_.WaitForEnd());
    if (ended == kRouter) return absl::UnavailableError("the router ended");
    if (std::all_of(worker_names_.begin(), worker_names_.end(),
                    [&](const std::string& name) { return supervisor_.Gone(name); })) {
      return absl::UnavailableError("no worker is left");
    }
  }
}

void Cluster::Stop() { supervisor_.Stop({{kRouter}, worker_names_, {kStore}}, kStopGrace); }

}  // namespace pagoda::ctl
