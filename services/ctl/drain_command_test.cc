#include <atomic>

#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pagoda/v1/control.grpc.pb.h"
#include "services/ctl/command.h"

namespace pagoda::ctl {
namespace {

using testing::HasSubstr;

// Knows one worker.
class FakeControl final : public v1::Control::Service {
 public:
  grpc::Status DrainWorker(grpc::ServerContext*, const v1::DrainWorkerRequest* request,
                           v1::DrainWorkerResponse*) override {
    if (request->name() != "worker-1") return {grpc::StatusCode::NOT_FOUND, "not known here"};
    ++drained;
    return grpc::Status::OK;
  }
  std::atomic<int> drained = 0;
};

int Drain(const std::string& worker, const std::string& router) {
  const char* argv[] = {"drain", worker.c_str(), "--router", router.c_str()};
  return RunDrain(4, argv);
}

TEST(DrainCommandTest, TheRouterIsToldAndItsRefusalIsShown) {
  FakeControl control;
  auto server = rpc::Server::Start({.address = "127.0.0.1:0", .services = {&control}});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(Drain("worker-1", (*server)->address()), 0);
  EXPECT_EQ(control.drained, 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(Drain("worker-2", (*server)->address()), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("not known here"));
  EXPECT_EQ(control.drained, 1);
}

TEST(DrainCommandTest, AMalformedAddressOrNoWorkerIsWrongUsage) {
  EXPECT_EQ(Drain("worker-1", "nowhere"), 2);
  const char* argv[] = {"drain"};
  EXPECT_EQ(RunDrain(1, argv), 2);
}

}  // namespace
}  // namespace pagoda::ctl
