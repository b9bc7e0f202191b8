// The local cluster of `pagoda up`: one KV store, one router, some workers, started in this order
// because the router needs the store's address and the workers need both.
//
// Concurrency: one thread (see supervisor.h).
#ifndef PAGODA_SERVICES_CTL_CLUSTER_H_
#define PAGODA_SERVICES_CTL_CLUSTER_H_

#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "services/ctl/supervisor.h"

namespace pagoda::ctl {

inline constexpr char kStoreProgram[] = "pagoda-kvstore";
inline constexpr char kRouterProgram[] = "pagoda-router";
inline constexpr char kWorkerProgram[] = "pagoda-worker";

class Cluster {
 public:
  struct Options {
    std::string folder;  // where the programs lie
    int workers = 1;     // named worker-0, worker-1, ...
    Duration start_timeout{};
    bool restart = true;  // children that end after the start
    // Flags of each program besides those that the cluster sets: names, and who serves and dials
    // which address. All but the router listen on free ports.
    std::vector<std::string> store_flags;
    std::vector<std::string> router_flags;
    std::vector<std::string> worker_flags;
  };

  explicit Cluster(Options options)
      : options_(std::move(options)), supervisor_(options_.restart, options_.start_timeout) {}

  // Returns when everything is ready. Errors: those of Supervisor.
  Status Start();

  // {"ready":true,"http":"http://HOST:PORT","grpc":"HOST:PORT","kvstore":"HOST:PORT","pids":{...}}.
  // REQUIRES: Start returned OK.
  std::string ReadyText() const;

  // Until a signal (CANCELLED), or until nobody can answer any more (UNAVAILABLE): the router is
  // gone for good, or the last worker. Another child's is logged and survived: a store is a cache,
  // and what a worker had can be done by the others.
  Status WaitForEnd();

  // Stops what was started: the router, which lets no new work in, then the workers, which may
  // still push, then the store.
  void Stop();

 private:
  Options options_;
  Supervisor supervisor_;
  std::vector<std::string> worker_names_;
};

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_CLUSTER_H_
