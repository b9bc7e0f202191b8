#include "services/ctl/child_process.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TimePoint In(std::chrono::seconds time) { return SystemClock::Get()->Now() + time; }

StatusOr<std::string> Shell(const std::string& script) {
  return CaptureOutput("/bin/sh", {"-c", script}, In(std::chrono::seconds(60)));
}

// Waits for output or its end.
void WaitForOutput(ChildProcess& child) {
  pollfd waited{child.output_fd(), POLLIN, 0};
  poll(&waited, 1, 60'000);
}

TEST(ChildProcessTest, OutputArrivesAsLines) {
  StatusOr<std::string> text = Shell("echo one; printf 'two\\nthree'");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "one\ntwo\nthree\n");
}

TEST(ChildProcessTest, AProgramThatIsNotThereIsNamed) {
  auto child = ChildProcess::Start("/nowhere/program", {});
  EXPECT_EQ(child.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(child.status().message()), HasSubstr("/nowhere/program"));
}

TEST(ChildProcessTest, AFailureIsReportedWithItsStatus) {
  EXPECT_EQ(Shell("exit 3").status().message(), "/bin/sh ended with status 3");
  EXPECT_EQ(Shell("kill -9 $$").status().message(), "/bin/sh was killed by signal 9");
}

TEST(ChildProcessTest, WaitingForTheEndIsBounded) {
  StatusOr<std::string> text =
      CaptureOutput("/bin/sh", {"-c", "exec sleep 1000"}, In(std::chrono::seconds(0)));
  EXPECT_EQ(text.status().code(), absl::StatusCode::kUnavailable);
}

TEST(ChildProcessTest, EndlessOutputIsBounded) {
  StatusOr<std::string> text =
      CaptureOutput("/bin/sh", {"-c", "exec tr '\\0' x < /dev/zero"}, In(std::chrono::seconds(60)));
  EXPECT_EQ(text.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ChildProcessTest, OnlyStandardDescriptorsAreInherited) {
  int extra = dup(STDERR_FILENO);  // without close-on-exec, as our own parent may leave them
  StatusOr<std::string> text = Shell("ls -l /proc/self/fd | wc -l; readlink /proc/self/fd/0");
  close(extra);
  ASSERT_TRUE(text.ok()) << text.status();
  // "total", 0, 1, 2, and the folder that ls itself reads.
  EXPECT_EQ(*text, "5\n/dev/null\n");
}

TEST(ChildProcessTest, TheChildHasAProcessGroupOfItsOwnAndDefaultSignals) {
  StatusOr<std::string> text =
      Shell("test $(ps -o pgid= -p $$) -eq $$ && grep -E 'Sig(Blk|Ign)' /proc/self/status");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(ChildProcessTest, SignalsReachItAndItsEndIsDescribed) {
  auto child = ChildProcess::Start(
      "/bin/sh", {"-c", "trap 'echo got it; exit 7' TERM; echo up; while :; do sleep 0.01; done"});
  ASSERT_TRUE(child.ok()) << child.status();
  WaitForOutput(**child);
  EXPECT_THAT((*child)->ReadLines(), ElementsAre("up"));
  EXPECT_TRUE((*child)->Running());
  (*child)->Signal(SIGTERM);
  WaitForOutput(**child);
  EXPECT_THAT((*child)->ReadLines(), ElementsAre("got it"));
  while ((*child)->Running()) WaitForOutput(**child);
  EXPECT_EQ((*child)->exit_status(), 7);
  EXPECT_EQ((*child)->DescribeEnd(), "ended with status 7");
  (*child)->Signal(SIGTERM);  // to nobody
}

TEST(ChildProcessTest, DroppingItEndsIt) {
  auto child = ChildProcess::Start("/bin/sleep", {"1000"});
  ASSERT_TRUE(child.ok()) << child.status();
  pid_t pid = (*child)->pid();
  child->reset();
  EXPECT_EQ(kill(pid, 0), -1);
}

}  // namespace
}  // namespace pagoda::ctl
