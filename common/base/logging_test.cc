#include "common/base/logging.h"

#include "gtest/gtest.h"

namespace pagoda {
namespace {

TEST(LoggingTest, ALineIsOneJsonObject) {
  EXPECT_EQ(FormatLogLine("T", LogLevel::kWarning, "worker-0", "load is slow",
                          {{"blocks", 3}, {"seconds", 0.25}, {"tier", "ram"}, {"late", true}}),
            R"({"ts":"T","level":"warning","service":"worker-0","msg":"load is slow",)"
            R"("blocks":3,"seconds":0.25,"tier":"ram","late":true})");
}

TEST(LoggingTest, TextCannotBreakOutOfItsField) {
  std::string out;
  AppendJsonString(out, std::string_view("a\"b\\c\n\x01\xff\xc3\xa9", 10));
  EXPECT_EQ(out, "\"a\\\"b\\\\c\\u000a\\u0001\xEF\xBF\xBD\xc3\xa9\"");
}

TEST(LoggingTest, LevelsHaveNames) {
  EXPECT_EQ(ParseLogLevel("error").value(), LogLevel::kError);
  EXPECT_FALSE(ParseLogLevel("loud").ok());
}

}  // namespace
}  // namespace pagoda
