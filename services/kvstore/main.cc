#include "common/base/address.h"
#include "common/base/flag_set.h"
#include "common/base/logging.h"
#include "common/base/ready_line.h"
#include "common/base/shutdown_signal.h"
#include "services/kvstore/kvstore_server.h"

int main(int argc, char** argv) {
  using pagoda::kvstore::KvStoreServer;
  KvStoreServer::Options options;
  std::string log_level = "info";
  pagoda::FlagSet flags("pagoda-kvstore",
                        "Keeps KV blocks by key. A cache: losing it costs time, never an answer.\n"
                        "Example: pagoda-kvstore --ram-bytes 8GiB");
  flags.AddChecked("grpc-address", "gRPC listener; port 0 takes a free one", &options.grpc_address,
                   pagoda::CheckListenAddress);
  flags.AddChecked("http-address", "health and metrics listener", &options.http_address,
                   pagoda::CheckListenAddress);
  flags.AddBytes("ram-bytes", "size of the RAM tier", &options.ram_bytes);
  flags.Add("data-dir", "folder for blocks that RAM has no room for; default: none, RAM only",
            &options.data_dir);
  flags.AddBytes("disk-bytes", "limit of the blocks in --data-dir", &options.disk_bytes);
  flags.Add("shard-id", "this store's name among several; default: random, kept in --data-dir",
            &options.shard_id);
  flags.AddChecked("log-level", "debug, info, warning or error", &log_level,
                   [](const std::string& name) { return pagoda::ParseLogLevel(name).status(); });
  if (auto status = flags.Parse(argc, argv)) return *status;
  pagoda::InitLogging("kvstore", *pagoda::ParseLogLevel(log_level));

  pagoda::ShutdownSignal signal;
  auto server = KvStoreServer::Start(options);
  if (!server.ok()) {
    pagoda::Log(pagoda::LogLevel::kError, "KV store cannot start", {{"status", server.status()}});
    return 1;
  }
  pagoda::PrintReadyLine((*server)->grpc_address(), (*server)->http_address());
  signal.Wait();
  // Clients see what is cut off as misses.
  (*server)->Shutdown(std::chrono::seconds(1));
  return 0;
}
