// `pagoda kv`: commands for the KV store.
#include <grpcpp/client_context.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/base/address.h"
#include "common/base/bytes.h"
#include "common/base/flag_set.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "pagoda/v1/kvstore.grpc.pb.h"
#include "services/ctl/command.h"
#include "services/ctl/table.h"

namespace pagoda::ctl {
namespace {

constexpr auto kTimeout = std::chrono::seconds(10);

constexpr char kHelp[] =
    "pagoda kv: look into the KV store\n\n"
    "  stats   what it holds: blocks and bytes by tier and by owner\n"
    "          pagoda kv stats --kvstore 127.0.0.1:7200\n"
    "\npagoda kv COMMAND --help explains one of them.\n";

struct StoreState {
  v1::DescribeResponse description;
  v1::StatsResponse stats;
};

StatusOr<StoreState> FetchState(const std::string& address) {
  auto channel = rpc::MakeChannel(address, rpc::ChannelKind::kControl);
  auto deadline = std::chrono::system_clock::now() + kTimeout;
  StoreState state;
  grpc::ClientContext describe, stats;
  describe.set_deadline(deadline);
  stats.set_deadline(deadline);
  PAGODA_RETURN_IF_ERROR(
      rpc::FromGrpc(v1::KvStore::NewStub(channel)->Describe(&describe, {}, &state.description)));
  PAGODA_RETURN_IF_ERROR(
      rpc::FromGrpc(v1::KvAdmin::NewStub(channel)->Stats(&stats, {}, &state.stats)));
  return state;
}

const char* TierName(v1::Tier tier) {
  return tier == v1::RAM ? "ram" : tier == v1::DISK ? "disk" : "unknown";
}

std::string FormatUptime(uint64_t ms) {
  uint64_t seconds = ms / 1000;
  char text[64];
  std::snprintf(text, sizeof(text), "%llu h %02llu min %02llu s",
                static_cast<unsigned long long>(seconds / 3600),
                static_cast<unsigned long long>(seconds / 60 % 60),
                static_cast<unsigned long long>(seconds % 60));
  return text;
}

void PrintText(const StoreState& state) {
  const v1::StatsResponse& stats = state.stats;
  std::printf("shard %s, version %s, up %s\n\n", state.description.shard_id().c_str(),
              state.description.version().c_str(), FormatUptime(stats.uptime_ms()).c_str());
  std::vector<std::vector<std::string>> tiers{{"tier", "blocks", "used", "limit", "evicted"}};
  for (const auto& tier : stats.tiers()) {
    tiers.push_back({TierName(tier.tier()), std::to_string(tier.blocks()),
                     FormatBytes(tier.bytes_used()), FormatBytes(tier.bytes_limit()),
                     std::to_string(tier.evicted_blocks())});
  }
  std::vector<std::vector<std::string>> owners{{"owner", "blocks", "used"}};
  for (const auto& owner : stats.owners()) {
    owners.push_back({owner.tenant().empty() ? "(no tenant)" : owner.tenant(),
                      std::to_string(owner.blocks()), FormatBytes(owner.bytes())});
  }
  std::printf("%s\n%s\n%llu divergent puts, %llu corrupt blocks\n", FormatTable(tiers).c_str(),
              FormatTable(owners).c_str(), static_cast<unsigned long long>(stats.divergent_puts()),
              static_cast<unsigned long long>(stats.corrupt_blocks()));
}

void PrintJson(const StoreState& state) {
  const v1::StatsResponse& stats = state.stats;
  using json = nlohmann::ordered_json;
  json object = {{"shard_id", state.description.shard_id()},
                 {"version", state.description.version()},
                 {"uptime_ms", stats.uptime_ms()},
                 {"tiers", json::array()},
                 {"owners", json::array()},
                 {"divergent_puts", stats.divergent_puts()},
                 {"corrupt_blocks", stats.corrupt_blocks()}};
  for (const auto& tier : stats.tiers()) {
    object["tiers"].push_back({{"tier", TierName(tier.tier())},
                               {"blocks", tier.blocks()},
                               {"bytes_used", tier.bytes_used()},
                               {"bytes_limit", tier.bytes_limit()},
                               {"evicted_blocks", tier.evicted_blocks()},
                               {"index_bytes", tier.index_bytes()}});
  }
  for (const auto& owner : stats.owners()) {
    object["owners"].push_back(
        {{"tenant", owner.tenant()}, {"blocks", owner.blocks()}, {"bytes", owner.bytes()}});
  }
  std::printf("%s\n", object.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
}

int Failure(int exit_status, const Status& status) {
  std::fprintf(stderr, "pagoda kv stats: %s\n", std::string(status.message()).c_str());
  return exit_status;
}

int RunStats(int argc, const char* const* argv) {
  std::string kvstore = "127.0.0.1:7200";
  std::string output = "text";
  FlagSet flags("pagoda kv stats",
                "What the KV store holds: blocks and bytes by tier and by owner. The store of "
                "`pagoda up` listens on a free port, which is in the line of JSON that `up` "
                "prints when it is ready (\"kvstore\").\n"
                "Example: pagoda kv stats --kvstore 127.0.0.1:7200");
  flags.Add("kvstore", "gRPC address of the KV store, HOST:PORT", &kvstore);
  flags.AddChoice("output", "tables, or one JSON object", &output, {"text", "json"});
  if (std::optional<int> status = flags.Parse(argc, argv)) return *status;
  if (Status parsed = ParseHostPort(kvstore).status(); !parsed.ok()) {
    return Failure(2, Annotate(parsed, "--kvstore"));
  }
  StatusOr<StoreState> state = FetchState(kvstore);
  if (!state.ok()) return Failure(1, Annotate(state.status(), kvstore));
  output == "json" ? PrintJson(*state) : PrintText(*state);
  return 0;
}

}  // namespace

int RunKv(int argc, const char* const* argv) {
  std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (name == "stats") return RunStats(argc - 1, argv + 1);
  if (!name.empty()) std::fprintf(stderr, "pagoda kv: unknown command \"%s\"\n\n", argv[1]);
  std::fputs(kHelp, stderr);
  return 2;
}

}  // namespace pagoda::ctl
