// pagoda-kvstore with faults, for cluster tests: the real gRPC service over a real RAM tier that
// goes wrong as told. POST /fault changes what is wrong (faulty_tier.h).
//
// usage: faulty_kvstore [--grpc-address A] [--http-address A] [--ram-bytes N] [--fault FAULT]
#include <grpcpp/support/server_callback.h>

#include <cstdio>

#include "CLI/CLI.hpp"
#include "common/base/random.h"
#include "common/base/ready_line.h"
#include "common/base/shutdown_signal.h"
#include "common/base/version.h"
#include "common/http/http_server.h"
#include "common/http/service_endpoints.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "services/kvstore/kvstore_service.h"
#include "services/kvstore/ram_tier.h"
#include "tests/faults/faulty_tier.h"

namespace pagoda::testing {
namespace {

// The real service, but for puts that are refused as a whole, and what it says of itself.
class FaultyService final : public kvstore::KvStoreMethods {
 public:
  FaultyService(kvstore::KvStoreService& real, const FaultyTier& tier) : real_(real), tier_(tier) {}

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* call,
                                     const v1::DescribeRequest* request,
                                     v1::DescribeResponse* response) override {
    if (!tier_.foreign_protocol()) return real_.Describe(call, request, response);
    response->mutable_protocol()->set_min(kProtocolMax + 1);
    response->mutable_protocol()->set_max(kProtocolMax + 1);
    grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* FindMissing(grpc::CallbackServerContext* call,
                                        const v1::FindMissingRequest* request,
                                        v1::FindMissingResponse* response) override {
    return real_.FindMissing(call, request, response);
  }
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Get(grpc::CallbackServerContext* call,
                                                  const grpc::ByteBuffer* request) override {
    return real_.Get(call, request);
  }
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Put(
      grpc::CallbackServerContext* call) override {
    if (tier_.refuses_puts()) return new RefusedPut;
    return real_.Put(call);
  }
  grpc::ServerUnaryReactor* ReportCorrupt(grpc::CallbackServerContext* call,
                                          const v1::ReportCorruptRequest* request,
                                          v1::ReportCorruptResponse* response) override {
    return real_.ReportCorrupt(call, request, response);
  }

 private:
  class RefusedPut final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
   public:
    RefusedPut() { Finish({grpc::StatusCode::UNAVAILABLE, "injected fault"}); }
    void OnDone() override { delete this; }
  };

  kvstore::KvStoreService& real_;
  const FaultyTier& tier_;
};

struct Options {
  std::string grpc_address = "127.0.0.1:0";
  std::string http_address = "127.0.0.1:0";
  uint64_t ram_bytes = uint64_t{256} << 20;
  std::string fault = "none";
};

void AddFaultRoutes(http::HttpRoutes& routes, FaultyTier& tier) {
  routes.Add("POST", "/fault",
             [&tier](const http::HttpRequest& request, std::shared_ptr<http::Responder> responder) {
               Status status = tier.SetFault(request.body);
               responder->Send(status.ok()
                                   ? http::TextResponse(200, "ok\n")
                                   : http::TextResponse(400, std::string(status.message())));
             });
}

Status Serve(const Options& options) {
  ShutdownSignal signal;
  Metrics metrics;
  PAGODA_ASSIGN_OR_RETURN(
      std::shared_ptr<kvstore::RamTier> ram,
      kvstore::RamTier::Create(
          {.bytes = options.ram_bytes, .policy = nullptr, .metrics = &metrics}));
  FaultyTier tier(ram);
  PAGODA_RETURN_IF_ERROR(tier.SetFault(options.fault));
  kvstore::StoreMetrics store_metrics{metrics};
  kvstore::StreamWatch watch{SystemClock::Get()};
  kvstore::StreamLimits limits;
  kvstore::ConnectionBudgets budgets{limits.inflight_bytes, watch.Waker()};
  kvstore::StreamContext context{tier, store_metrics, watch, budgets, *SystemClock::Get(), limits};
  kvstore::KvStoreService real(context, {RandomHex128(), RandomId()});
  FaultyService service(real, tier);

  http::HttpRoutes routes;
  http::AddServiceEndpoints(routes, {.ready = [] { return absl::OkStatus(); },
                                     .metrics = [&metrics] { return metrics.Render(); }});
  AddFaultRoutes(routes, tier);
  PAGODA_ASSIGN_OR_RETURN(
      auto http, http::HttpServer::Start({.address = options.http_address}, std::move(routes)));
  PAGODA_ASSIGN_OR_RETURN(auto grpc,
                          rpc::Server::Start({.address = options.grpc_address,
                                              .services = {&service},
                                              .max_receive_bytes = rpc::kMaxMessageBytes}));
  grpc->SetReady(true);
  PrintReadyLine(grpc->address(), http->address());
  signal.Wait();
  grpc->Shutdown(std::chrono::seconds(1));
  http->Stop();
  return absl::OkStatus();
}

}  // namespace
}  // namespace pagoda::testing

int main(int argc, char** argv) {
  pagoda::testing::Options options;
  CLI::App app("A KV store with faults, for cluster tests. POST /fault changes what is wrong.");
  app.add_option("--grpc-address", options.grpc_address);
  app.add_option("--http-address", options.http_address);
  app.add_option("--ram-bytes", options.ram_bytes);
  app.add_option("--fault", options.fault, "what is wrong at the start (faulty_tier.h)");
  CLI11_PARSE(app, argc, argv);
  pagoda::Status status = pagoda::testing::Serve(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
