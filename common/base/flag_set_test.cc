#include "common/base/flag_set.h"

#include <cstdlib>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

struct Values {
  std::string name = "x";
  std::vector<std::string> names;
  int threads = 2;
  bool chunked = true;
  Duration wait{};
  uint64_t cache_bytes = 1 << 20;
  std::string dtype = "auto";
};

std::optional<int> Parse(Values& values, std::vector<const char*> arguments) {
  FlagSet flags("prog", "a program");
  flags.Add("name", "a name", &values.name);
  flags.Add("served-name", "names", &values.names);
  flags.Add("threads", "threads", &values.threads, 1, 64);
  flags.AddSwitch("chunked", "in chunks", &values.chunked);
  flags.AddMilliseconds("wait-ms", "wait", &values.wait);
  flags.AddBytes("cache-bytes", "cache", &values.cache_bytes);
  flags.AddChoice("dtype", "type", &values.dtype, {"auto", "f32"});
  arguments.insert(arguments.begin(), "prog");
  return flags.Parse(static_cast<int>(arguments.size()), arguments.data());
}

TEST(FlagSetTest, ReadsFlagsOfEveryKind) {
  Values values;
  EXPECT_EQ(Parse(values,
                  {"--name", "a", "--served-name", "m", "--served-name", "n", "--threads=4",
                   "--no-chunked", "--cache-bytes", "16MiB", "--wait-ms", "250", "--dtype", "f32"}),
            std::nullopt);
  EXPECT_EQ(values.name, "a");
  EXPECT_EQ(values.wait, std::chrono::milliseconds(250));
  EXPECT_EQ(values.names, (std::vector<std::string>{"m", "n"}));
  EXPECT_EQ(values.threads, 4);
  EXPECT_FALSE(values.chunked);
  EXPECT_EQ(values.cache_bytes, 16u << 20);
  EXPECT_EQ(values.dtype, "f32");
}

TEST(FlagSetTest, BadInputEndsWithStatus2AndNamesFlagAndValue) {
  for (std::vector<const char*> arguments : {std::vector<const char*>{"--unknown", "1"},
                                             {"--threads", "0"},
                                             {"--threads", "many"},
                                             {"--cache-bytes", "16MB"},
                                             {"--dtype", "int3"},
                                             {"stray"}}) {
    Values values;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(Parse(values, arguments), 2) << arguments[0];
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(arguments.back()));
  }
}

TEST(FlagSetTest, AFlagBeatsTheEnvironmentWhichBeatsTheFile) {
  std::string file = ::testing::TempDir() + "/flag_set_test.conf";
  std::ofstream(file) << "name = \"file\"\nthreads = 7\ndtype = \"f32\"\n";
  setenv("PAGODA_NAME", "environment", 1);
  setenv("PAGODA_THREADS", "5", 1);
  Values values;
  EXPECT_EQ(Parse(values, {"--config", file.c_str(), "--name", "flag"}), std::nullopt);
  unsetenv("PAGODA_NAME");
  unsetenv("PAGODA_THREADS");
  EXPECT_EQ(values.name, "flag");
  EXPECT_EQ(values.threads, 5);
  EXPECT_EQ(values.dtype, "f32");
}

TEST(FlagSetTest, AnUnknownKeyOfTheFileIsAnError) {
  std::string file = ::testing::TempDir() + "/flag_set_test_bad.conf";
  std::ofstream(file) << "nmae = \"typo\"\n";
  Values values;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Parse(values, {"--config", file.c_str()}), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("prog: --config: \"nmae\" is no flag of this program"));
}

TEST(FlagSetTest, AFileThatCannotBeReadIsAnErrorThatNamesTheFlag) {
  Values values;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Parse(values, {"--config", "/no/such/file"}), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("--config: /no/such/file"));
}

TEST(FlagSetTest, ListFlagsSaysWhatTakesAValue) {
  Values values;
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Parse(values, {"--list-flags"}), 0);
  std::string listed = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(listed, HasSubstr("threads value\n"));
  EXPECT_THAT(listed, HasSubstr("chunked switch\n"));
  EXPECT_THAT(listed, ::testing::Not(HasSubstr("help")));
}

TEST(FlagSetTest, HelpSaysHowASwitchStands) {
  Values values;
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Parse(values, {"--help"}), 0);
  std::string help = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(help, HasSubstr("--[no-]chunked"));
  EXPECT_THAT(help, HasSubstr("in chunks (default: on)"));
  EXPECT_THAT(help, ::testing::Not(HasSubstr("{false}")));
}

}  // namespace
}  // namespace pagoda
