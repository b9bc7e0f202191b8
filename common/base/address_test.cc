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

TEST(AddressTest, ProcessesAreNamedAsHostsAre) {
  for (std::string_view name : {"worker-0", "a", "0"}) EXPECT_TRUE(IsProcessName(name)) << name;
  EXPECT_TRUE(IsProcessName(std::string(63, 'x')));
  EXPECT_FALSE(IsProcessName(std::string(64, 'x')));
  for (std::string_view name : {"", "Worker", "a.b", "a b", "a/b", "\xc3\xa9"}) {
    EXPECT_FALSE(IsProcessName(name)) << name;
  }
}

}  // namespace
}  // namespace pagoda
