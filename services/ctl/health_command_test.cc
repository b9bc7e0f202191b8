#include "common/rpc/server.h"
#include "gtest/gtest.h"
#include "services/ctl/command.h"

namespace pagoda::ctl {
namespace {

int Health(const std::string& address) {
  const char* argv[] = {"health", address.c_str()};
  return RunHealth(2, argv);
}

TEST(HealthCommandTest, TheStatusTellsWhetherTheServiceIsReady) {
  auto server = rpc::Server::Start({.address = "127.0.0.1:0"});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(Health((*server)->address()), 1);
  (*server)->SetReady(true);
  EXPECT_EQ(Health((*server)->address()), 0);
}

TEST(HealthCommandTest, NobodyThereIsNotReady) {
  auto server = rpc::Server::Start({.address = "127.0.0.1:0"});
  ASSERT_TRUE(server.ok()) << server.status();
  std::string address = (*server)->address();
  server->reset();
  EXPECT_EQ(Health(address), 1);
}

TEST(HealthCommandTest, AMalformedAddressIsWrongUsage) { EXPECT_EQ(Health("nowhere"), 2); }

}  // namespace
}  // namespace pagoda::ctl
