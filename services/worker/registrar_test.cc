#include "services/worker/registrar.h"

#include <atomic>
#include <thread>

#include "common/rpc/server.h"
#include "gtest/gtest.h"
#include "pagoda/v1/control.grpc.pb.h"

namespace pagoda::worker {
namespace {

// Counts what it is told; ends a report stream after `reports_per_stream` reports.
class FakeControl final : public v1::Control::Service {
 public:
  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest* request,
                        v1::RegisterResponse* response) override {
    if (request->name() != "worker-0") return {grpc::StatusCode::INVALID_ARGUMENT, "name"};
    ++registrations;
    response->set_report_interval_ms(report_interval_ms);
    return grpc::Status::OK;
  }
  grpc::Status Report(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ReportResponse, v1::ReportRequest>* stream) override {
    v1::ReportRequest report;
    for (int i = 1; stream->Read(&report); ++i) {
      if (report.sequence() != static_cast<uint64_t>(i) || report.running() != 3) ++wrong_reports;
      ++reports;
      stream->Write({});
      if (i == reports_per_stream) break;
    }
    return grpc::Status::OK;
  }

  std::atomic<int> registrations = 0, reports = 0, wrong_reports = 0;
  std::atomic<int> reports_per_stream = 1'000'000;
  std::atomic<uint32_t> report_interval_ms = 1;
};

Registrar::Options TestOptions(std::string address) {
  Registrar::Options options;
  options.router_address = std::move(address);
  options.registration.set_name("worker-0");
  options.registration.set_instance_id(7);
  options.fill_report = [](v1::ReportRequest& report) { report.set_running(3); };
  return options;
}

// Polls with a bound far above what is needed; the condition, not the time, is what is tested.
bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST(RegistrarTest, RegistersAndThenReportsAtTheRoutersInterval) {
  FakeControl control;
  auto server = rpc::Server::Start({.address = "127.0.0.1:0", .services = {&control}});
  ASSERT_TRUE(server.ok());
  Registrar registrar(TestOptions((*server)->address()));
  EXPECT_TRUE(Eventually([&] { return control.reports >= 5; }));
  EXPECT_TRUE(registrar.registered());
  EXPECT_EQ(control.registrations, 1);
  EXPECT_EQ(control.wrong_reports, 0);
}

TEST(RegistrarTest, AReportCanBeHadBeforeItsTime) {
  FakeControl control;
  control.report_interval_ms = 3'600'000;
  auto server = rpc::Server::Start({.address = "127.0.0.1:0", .services = {&control}});
  ASSERT_TRUE(server.ok());
  Registrar registrar(TestOptions((*server)->address()));
  ASSERT_TRUE(Eventually([&] { return registrar.registered(); }));
  EXPECT_EQ(control.reports, 1);
  registrar.ReportSoon();
  EXPECT_TRUE(Eventually([&] { return control.reports == 2; }));
}

TEST(RegistrarTest, RegistersAgainWhenTheStreamEnds) {
  FakeControl control;
  control.reports_per_stream = 1;
  auto server = rpc::Server::Start({.address = "127.0.0.1:0", .services = {&control}});
  ASSERT_TRUE(server.ok());
  Registrar registrar(TestOptions((*server)->address()));
  EXPECT_TRUE(Eventually([&] { return control.registrations >= 3; }));
}

TEST(RegistrarTest, FindsARouterThatStartsLater) {
  FakeControl control;
  std::string address;
  {
    auto probe = rpc::Server::Start({.address = "127.0.0.1:0"});
    ASSERT_TRUE(probe.ok());
    address = (*probe)->address();
  }
  Registrar registrar(TestOptions(address));
  EXPECT_FALSE(registrar.registered());
  auto server = rpc::Server::Start({.address = address, .services = {&control}});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(Eventually([&] { return control.reports >= 1; }));
}

// Waiting out a back-off, or for a router that never answers, would run into the test's time limit.
TEST(RegistrarTest, StopsWhileTheRouterIsGone) { Registrar registrar(TestOptions("127.0.0.1:1")); }

}  // namespace
}  // namespace pagoda::worker
