#include "common/base/address.h"

#include "gtest/gtest.h"

namespace pagoda {
namespace {

TEST(AddressTest, ParsesAndPrintsHostAndPort) {
  for (std::string_view text : {"127.0.0.1:7070", "localhost:0", "[::1]:65535", "host-1.x:80"}) {
    StatusOr<HostPort> address = ParseHostPort(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(AddressTest, RefusesOtherText) {
  for (std::string_view text : {"", ":", ":80", "host", "host:", "host:65536", "host:-1", "host:8x",
                                "::1:80", "[::1]", "[]:1"}) {
    EXPECT_FALSE(ParseHostPort(text).ok()) << text;
  }
}

TEST(AddressTest, OnlyLoopbackMayBeListenedOn) {
  for (std::string_view text : {"127.0.0.1:0", "127.8.9.10:1", "localhost:0", "[::1]:0"}) {
    EXPECT_TRUE(CheckListenAddress(text).ok()) << text;
  }
  for (std::string_view text : {"0.0.0.0:0", "[::]:0", "10.0.0.1:1", "example.org:1"}) {
    EXPECT_FALSE(CheckListenAddress(text).ok()) << text;
  }
}

}  // namespace
}  // namespace pagoda
