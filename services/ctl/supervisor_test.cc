#include "services/ctl/supervisor.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kSayReady =
    R"(echo '{"ready":true,"grpc":"127.0.0.1:1","http":"127.0.0.1:2","pid":3}'; )";
// Also when ignoring SIGTERM, which survives exec.
const std::string kWaitForever = "exec sleep 1000";

TimePoint Soon() { return SystemClock::Get()->Now() + std::chrono::seconds(60); }

// Signals to us go to this thread (raise): other tests of the binary leave gRPC threads behind.
class SupervisorTest : public testing::Test {
 protected:
  Status StartShell(const std::string& name, const std::string& script) {
    return supervisor_.Start(name, "/bin/sh", {"-c", script});
  }
  void StartDeafToSigterm(const std::string& name) {
    ASSERT_TRUE(StartShell(name, "trap '' TERM; " + kSayReady + kWaitForever).ok());
    ASSERT_TRUE(supervisor_.WaitReady(Soon()).ok());
  }

  Supervisor supervisor_{/*restart=*/false, std::chrono::hours(1)};
};

class RestartingSupervisorTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(seen_); }

  // Ready at its first start; `later` at each other one.
  void StartShell(const std::string& name, const std::string& later) {
    Status status =
        supervisor_.Start(name, "/bin/sh",
                          {"-c", "if [ -s " + seen_ + " ]; then " + later + "; fi; echo $$ >" +
                                     seen_ + "; " + kSayReady + kWaitForever});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(supervisor_.WaitReady(Soon()).ok());
  }

  // Short, so that a test sees it pass; those that are ready at once come long before it, or are
  // killed and started again.
  Supervisor supervisor_{/*restart=*/true, std::chrono::seconds(2)};
  const std::string seen_ =
      testing::TempDir() + "/restarting_supervisor_test." + std::to_string(getpid());
};

TEST(ReadyLineTest, AddressesAreTaken) {
  auto line = ParseReadyLine(R"({"ready":true,"grpc":"[::1]:7","http":"127.0.0.1:8","pid":1})");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->grpc, "[::1]:7");
  EXPECT_EQ(line->http, "127.0.0.1:8");
}

TEST(ReadyLineTest, OtherLinesAreRefusedWithAReason) {
  for (const char* line :
       {"", "ready", "[]", "{}", R"({"ready":false})", R"({"ready":true})",
        R"({"ready":true,"grpc":7,"http":"127.0.0.1:8"})",
        R"({"ready":true,"grpc":"nowhere","http":"127.0.0.1:8"})",
        R"({"ready":true,"grpc":"127.0.0.1:7"})", R"({"ready":true,"grpc":"127.0.0.1:7","http)"}) {
    EXPECT_EQ(ParseReadyLine(line).status().code(), absl::StatusCode::kInvalidArgument) << line;
  }
}

TEST_F(SupervisorTest, ReadyChildrenAreKnownByAddressAndEndWhenAsked) {
  ASSERT_TRUE(StartShell("a", kSayReady + kWaitForever).ok());
  ASSERT_TRUE(StartShell("b", kSayReady + kWaitForever).ok());
  ASSERT_TRUE(supervisor_.WaitReady(Soon()).ok());
  EXPECT_EQ(supervisor_.addresses("a").grpc, "127.0.0.1:1");
  pid_t pid = supervisor_.pid("b");
  supervisor_.Stop({{"a"}, {"b", "never started"}}, std::chrono::seconds(60));
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(SupervisorTest, AChildThatEndsBeforeItIsReadyIsNamed) {
  ASSERT_TRUE(StartShell("worker-1", "exit 3").ok());
  Status status = supervisor_.WaitReady(Soon());
  EXPECT_EQ(status, absl::UnavailableError("worker-1 ended with status 3 before it was ready"));
}

TEST_F(SupervisorTest, AChildThatRefusesItsFlagsIsToldFromOneThatFails) {
  ASSERT_TRUE(StartShell("worker-1", "exit 2").ok());
  Status status = supervisor_.WaitReady(Soon());
  EXPECT_EQ(status, absl::InvalidArgumentError("worker-1 ended with status 2 before it was ready"));
}

TEST_F(SupervisorTest, AChildThatSaysSomethingElseIsNamed) {
  ASSERT_TRUE(StartShell("router", "echo hello; " + kWaitForever).ok());
  Status status = supervisor_.WaitReady(Soon());
  EXPECT_THAT(std::string(status.message()), HasSubstr("router: not a ready line: \"hello\""));
}

TEST_F(SupervisorTest, WaitingForReadyIsBounded) {
  ASSERT_TRUE(StartShell("router", kWaitForever).ok());
  Status status = supervisor_.WaitReady(SystemClock::Get()->Now());
  EXPECT_EQ(status, absl::UnavailableError("router was not ready in time"));
}

TEST_F(SupervisorTest, AChildThatDiesLaterIsReportedOnce) {
  ASSERT_TRUE(StartShell("a", kSayReady + kWaitForever).ok());
  ASSERT_TRUE(StartShell("b", kSayReady + kWaitForever).ok());
  ASSERT_TRUE(supervisor_.WaitReady(Soon()).ok());
  kill(supervisor_.pid("b"), SIGKILL);
  StatusOr<std::string> ended = supervisor_.WaitForEnd();
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(*ended, "b");
  EXPECT_TRUE(supervisor_.Gone("b"));
  EXPECT_FALSE(supervisor_.Gone("a"));
  raise(SIGTERM);
  EXPECT_EQ(supervisor_.WaitForEnd().status().code(), absl::StatusCode::kCancelled);
}

TEST(WithAddressesTest, ListenersAreReplacedAndTheRestStays) {
  ReadyLine addresses{.grpc = "127.0.0.1:7", .http = "127.0.0.1:8"};
  EXPECT_THAT(
      WithAddresses({"--grpc-address", "127.0.0.1:0", "--name", "a", "--http-address", ":0"},
                    addresses),
      ElementsAre("--name", "a", "--grpc-address", "127.0.0.1:7", "--http-address", "127.0.0.1:8"));
  EXPECT_THAT(WithAddresses({}, addresses),
              ElementsAre("--grpc-address", "127.0.0.1:7", "--http-address", "127.0.0.1:8"));
}

TEST_F(RestartingSupervisorTest, AChildThatDiesIsStartedAgainUntilItsFlagsAreWrong) {
  StartShell("a", "exit 2");
  pid_t first = supervisor_.pid("a");
  kill(first, SIGKILL);
  StatusOr<std::string> gone = supervisor_.WaitForEnd();
  ASSERT_TRUE(gone.ok()) << gone.status();
  EXPECT_EQ(*gone, "a");
  EXPECT_TRUE(supervisor_.Gone("a"));
  EXPECT_NE(supervisor_.pid("a"), first) << "status 2 came from a second process";
}

TEST_F(RestartingSupervisorTest, ARestartedChildThatIsNotReadyInTimeIsKilledAndStartedAgain) {
  // Its second process hangs, and leaves a mark by which the third one knows itself.
  StartShell("a", "if [ -e " + seen_ + ".hung ]; then rm " + seen_ + ".hung; exit 2; fi; touch " +
                      seen_ + ".hung; " + kWaitForever);
  kill(supervisor_.pid("a"), SIGKILL);
  StatusOr<std::string> gone = supervisor_.WaitForEnd();
  ASSERT_TRUE(gone.ok()) << gone.status();
  EXPECT_EQ(*gone, "a") << "status 2 came from a third process";
  EXPECT_FALSE(std::filesystem::exists(seen_ + ".hung"));
}

TEST_F(RestartingSupervisorTest, ARestartedChildThatSaysSomethingElseIsNamed) {
  StartShell("a", "echo hello; " + kWaitForever);
  kill(supervisor_.pid("a"), SIGKILL);
  EXPECT_EQ(supervisor_.WaitForEnd().status(),
            absl::UnavailableError("a: not a ready line: \"hello\""));
}

TEST_F(RestartingSupervisorTest, ASignalToUsEndsTheWaitForARestart) {
  StartShell("a", "exit 2");
  kill(supervisor_.pid("a"), SIGKILL);
  raise(SIGTERM);
  EXPECT_EQ(supervisor_.WaitForEnd().status().code(), absl::StatusCode::kCancelled);
  supervisor_.Stop({{"a"}}, std::chrono::hours(24));
}

TEST_F(SupervisorTest, ASignalToUsCancelsTheWait) {
  ASSERT_TRUE(StartShell("router", kWaitForever).ok());
  raise(SIGTERM);
  EXPECT_EQ(supervisor_.WaitReady(Soon()).code(), absl::StatusCode::kCancelled);
}

TEST_F(SupervisorTest, AChildThatDoesNotStopIsKilled) {
  StartDeafToSigterm("a");
  pid_t pid = supervisor_.pid("a");
  supervisor_.Stop({{"a"}}, std::chrono::milliseconds(1));
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(SupervisorTest, ASecondSignalEndsThePatienceWithAllStages) {
  StartDeafToSigterm("a");
  StartDeafToSigterm("b");
  raise(SIGINT);
  supervisor_.Stop({{"a"}, {"b"}}, std::chrono::hours(24));
}

}  // namespace
}  // namespace pagoda::ctl
