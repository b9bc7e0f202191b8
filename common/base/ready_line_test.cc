#include "common/base/ready_line.h"

#include "gtest/gtest.h"

namespace pagoda {
namespace {

TEST(ReadyLineTest, IsOneJsonObject) {
  EXPECT_EQ(FormatReadyLine("127.0.0.1:1", "[::1]:2", 3),
            R"({"ready":true,"grpc":"127.0.0.1:1","http":"[::1]:2","pid":3})");
}

}  // namespace
}  // namespace pagoda
