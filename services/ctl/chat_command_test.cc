#include <initializer_list>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/ctl/command.h"

namespace pagoda::ctl {
namespace {

using ::testing::HasSubstr;

// The exit status of `pagoda chat` with these arguments, which must not get as far as a router.
int Chat(std::initializer_list<const char*> arguments, std::string& error) {
  std::vector<const char*> argv = {"chat"};
  argv.insert(argv.end(), arguments);
  ::testing::internal::CaptureStderr();
  const int status = RunChat(static_cast<int>(argv.size()), argv.data());
  error = ::testing::internal::GetCapturedStderr();
  return status;
}

TEST(ChatCommandTest, TwoSystemPromptsAreRefusedNotOneOfThemForgotten) {
  std::string error;
  EXPECT_EQ(Chat({"--system", "a", "--system-file", "/dev/null", "--http", "127.0.0.1:1", "hello"},
                 error),
            2);
  EXPECT_THAT(error, HasSubstr("--system-file"));
}

TEST(ChatCommandTest, ASystemPromptThatCannotBeReadIsNamed) {
  std::string error;
  EXPECT_EQ(Chat({"--system-file", "/no/such/file", "--http", "127.0.0.1:1", "hello"}, error), 2);
  EXPECT_THAT(error, HasSubstr("--system-file: cannot read \"/no/such/file\""));
}

}  // namespace
}  // namespace pagoda::ctl
