#include "common/base/shutdown_signal.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

#include "gtest/gtest.h"

namespace pagoda {
namespace {

using Body = std::function<void(ShutdownSignal&)>;

// It waits for something, or for us because it has ended.
bool Sleeps(pid_t process) {
  std::string stat;
  std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), stat);
  const std::string state = stat.substr(stat.rfind(')') + 1, 2);
  return state == " S" || state == " Z";
}

// The status with which a child ends that gets the signal once it sleeps in `body`.
int StatusAfter(int signal_number, const Body& body) {
  int started[2];
  EXPECT_EQ(pipe(started), 0);
  pid_t child = fork();
  if (child == 0) {
    alarm(240);  // only ends hangs
    ShutdownSignal signal;
    if (write(started[1], "s", 1) != 1) _exit(99);
    body(signal);
    _exit(98);
  }
  close(started[1]);
  char byte;
  EXPECT_EQ(read(started[0], &byte, 1), 1);
  while (!Sleeps(child)) usleep(1000);
  kill(child, signal_number);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  close(started[0]);
  return status;
}

TEST(ShutdownSignal, EndsAtOnceAndWellAProcessThatIsStillStarting) {
  for (int number : {SIGTERM, SIGINT}) {
    int status = StatusAfter(number, [](ShutdownSignal&) {
      for (;;) pause();
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

TEST(ShutdownSignal, LeavesTheEndToWhoWaitsForIt) {
  for (int number : {SIGTERM, SIGINT}) {
    int status = StatusAfter(number, [](ShutdownSignal& signal) {
      signal.Wait();
      _exit(7);
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  }
}

TEST(ShutdownSignal, TheSecondOneEndsAProcessThatHangsInItsEnd) {
  for (int number : {SIGTERM, SIGINT}) {
    int status = StatusAfter(number, [number](ShutdownSignal& signal) {
      signal.Wait();
      kill(getpid(), number);
      for (;;) pause();
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
  }
}

}  // namespace
}  // namespace pagoda
