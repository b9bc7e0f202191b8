#include "services/ctl/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace pagoda::ctl {
namespace {

constexpr size_t kMaxCaptureBytes = 1 << 20;

// Runs in the child between fork and exec: plain system calls only. Returns errno.
int BecomeProgram(pid_t parent, int output, int failure, const char* file, char* const* argv) {
  // The kernel sends this when the thread that forked ends. If it ended before this call, no signal
  // ever comes, hence the second look.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  setpgid(0, 0);
  // Masks and ignored signals survive exec, and would surprise the program.
  for (int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  int input = open("/dev/null", O_RDONLY);
  if (input < 0 || dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0) return errno;
  // `failure` closes with exec too, which is how the parent learns that exec worked. Kernels older
  // than 5.11 refuse the call; our own descriptors are close-on-exec anyway.
  close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
  execv(file, argv);
  return errno;
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;

  bool Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  static void Close(int& end) {
    if (end >= 0) close(std::exchange(end, -1));
  }
  ~Pipe() {
    Close(read_end);
    Close(write_end);
  }
};

}  // namespace

StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::string& file, const std::vector<std::string>& arguments) {
  Pipe output, failure;
  if (!output.Open() || !failure.Open()) {
    return absl::InternalError(std::string("cannot make a pipe: ") + strerror(errno));
  }
  std::vector<char*> argv{const_cast<char*>(file.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return absl::InternalError(std::string("cannot fork: ") + strerror(errno));
  if (pid == 0) {
    int error =
        BecomeProgram(parent, output.write_end, failure.write_end, file.c_str(), argv.data());
    [[maybe_unused]] ssize_t written = write(failure.write_end, &error, sizeof(error));
    _exit(127);
  }
  Pipe::Close(output.write_end);
  Pipe::Close(failure.write_end);
  fcntl(output.read_end, F_SETFL, O_NONBLOCK);
  auto child =
      std::unique_ptr<ChildProcess>(new ChildProcess(pid, std::exchange(output.read_end, -1)));
  int error = 0;
  ssize_t got;
  do {
    got = read(failure.read_end, &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  if (got == sizeof(error)) {
    return absl::NotFoundError("cannot run " + file + ": " + strerror(error));
  }
  return child;
}

ChildProcess::~ChildProcess() {
  if (Running()) {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (output_fd_ >= 0) close(output_fd_);
}

std::vector<std::string> ChildProcess::ReadLines() {
  std::vector<std::string> lines;
  char buffer[4096];
  while (output_fd_ >= 0) {
    ssize_t got = read(output_fd_, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      close(std::exchange(output_fd_, -1));
      if (!partial_line_.empty()) lines.push_back(std::exchange(partial_line_, {}));
      break;
    }
    for (char c : std::string_view(buffer, static_cast<size_t>(got))) {
      if (c != '\n') partial_line_ += c;
      if (c == '\n' || partial_line_.size() == kMaxLineBytes) {
        lines.push_back(std::exchange(partial_line_, {}));
      }
    }
    // A child that prints faster than we read must not keep us here.
    if (lines.size() >= 64) break;
  }
  return lines;
}

bool ChildProcess::Running() {
  if (wait_status_) return false;
  int status = 0;
  pid_t got = waitpid(pid_, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return true;
  wait_status_ = got == pid_ ? status : 0;
  return false;
}

std::optional<int> ChildProcess::exit_status() const {
  if (!WIFEXITED(*wait_status_)) return std::nullopt;
  return WEXITSTATUS(*wait_status_);
}

std::string ChildProcess::DescribeEnd() const {
  if (std::optional<int> status = exit_status()) {
    return "ended with status " + std::to_string(*status);
  }
  return "was killed by signal " + std::to_string(WTERMSIG(*wait_status_));
}

void ChildProcess::Signal(int signal) {
  // After its end the number may belong to another process.
  if (Running()) kill(pid_, signal);
}

StatusOr<std::string> CaptureOutput(const std::string& file,
                                    const std::vector<std::string>& arguments, TimePoint deadline) {
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> child,
                          ChildProcess::Start(file, arguments));
  std::string text;
  auto left_ms = [&] {
    auto left = deadline - SystemClock::Get()->Now();
    return std::chrono::duration_cast<std::chrono::milliseconds>(left).count();
  };
  while (child->output_fd() >= 0 || child->Running()) {
    if (left_ms() <= 0) return absl::UnavailableError(file + " did not end in time");
    // Without output there is nothing to wait on but the end, which comes soon after.
    pollfd waited{child->output_fd(), POLLIN, 0};
    poll(&waited, 1,
         static_cast<int>(std::min<int64_t>(left_ms(), child->output_fd() < 0 ? 5 : 1000)));
    for (const std::string& line : child->ReadLines()) text += line + "\n";
    if (text.size() > kMaxCaptureBytes) {
      return absl::ResourceExhaustedError(file + " printed over 1 MiB");
    }
  }
  if (child->exit_status() != 0) return absl::UnavailableError(file + " " + child->DescribeEnd());
  return text;
}

}  // namespace pagoda::ctl
