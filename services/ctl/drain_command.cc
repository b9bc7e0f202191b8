// `pagoda drain WORKER`: the router sends it no new requests.
#include <grpcpp/client_context.h>

#include <cstdio>
#include <string>

#include "common/base/address.h"
#include "common/base/flag_set.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "pagoda/v1/control.grpc.pb.h"
#include "services/ctl/command.h"

namespace pagoda::ctl {
namespace {

constexpr auto kTimeout = std::chrono::seconds(10);

Status Drain(const std::string& router, const std::string& worker) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTimeout);
  v1::DrainWorkerRequest request;
  request.set_name(worker);
  v1::DrainWorkerResponse response;
  auto stub = v1::Control::NewStub(rpc::MakeChannel(router, rpc::ChannelKind::kControl));
  return rpc::FromGrpc(stub->DrainWorker(&context, request, &response));
}

int Failure(int exit_status, const Status& status) {
  std::fprintf(stderr, "pagoda drain: %s\n", std::string(status.message()).c_str());
  return exit_status;
}

}  // namespace

int RunDrain(int argc, const char* const* argv) {
  std::string worker;
  std::string router = "127.0.0.1:7070";
  FlagSet flags(
      "pagoda drain",
      "Stops new requests to a worker; those that it has go on. `pagoda workers` shows it as "
      "draining, until it is stopped (SIGTERM) or starts anew.\n"
      "Example: pagoda drain worker-1");
  flags.AddPositional("worker", "the worker's name, as `pagoda workers` lists it", &worker,
                      /*required=*/true);
  flags.Add("router", "gRPC address of the router, HOST:PORT", &router);
  if (std::optional<int> status = flags.Parse(argc, argv)) return *status;
  if (Status parsed = ParseHostPort(router).status(); !parsed.ok()) {
    return Failure(2, Annotate(parsed, "--router"));
  }
  if (Status status = Drain(router, worker); !status.ok()) return Failure(1, status);
  std::printf("%s: draining\n", worker.c_str());
  return 0;
}

}  // namespace pagoda::ctl
