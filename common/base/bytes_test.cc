#include "common/base/bytes.h"

#include "gtest/gtest.h"

namespace pagoda {
namespace {

TEST(BytesTest, ParsesWhatPeopleWrite) {
  EXPECT_EQ(ParseBytes("0").value(), 0u);
  EXPECT_EQ(ParseBytes("4096").value(), 4096u);
  EXPECT_EQ(ParseBytes("64B").value(), 64u);
  EXPECT_EQ(ParseBytes("16KiB").value(), 16384u);
  EXPECT_EQ(ParseBytes("512MiB").value(), 536870912u);
  EXPECT_EQ(ParseBytes("1.5GiB").value(), 1610612736u);
}

TEST(BytesTest, RefusesOtherTextAndNamesIt) {
  for (const char* text : {"", "-1", "1 GiB", "1GB", "1gib", "GiB", "0.3B", "1e3", "nan", "inf",
                           "99999999999999999999", "1GiBx"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
  EXPECT_NE(ParseBytes("1GB").status().message().find("\"1GB\""), absl::string_view::npos);
}

TEST(BytesTest, FormatsForPeople) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(536870912), "512 MiB");
  EXPECT_EQ(FormatBytes(1610612736), "1.5 GiB");
}

TEST(BytesTest, HexGoesBothWays) {
  std::string bytes("\x00\xff\x1a", 3);
  EXPECT_EQ(ToHex(bytes), "00ff1a");
  EXPECT_EQ(FromHex("00FF1a").value(), bytes);
  EXPECT_FALSE(FromHex("0").ok());
  EXPECT_FALSE(FromHex("0g").ok());
}

TEST(BytesTest, IntegersAreLittleEndian) {
  std::string out;
  AppendLe<uint32_t>(out, 0x01020304);
  EXPECT_EQ(out, "\x04\x03\x02\x01");
  EXPECT_EQ(LoadLe<uint32_t>(out.data()), 0x01020304u);
}

}  // namespace
}  // namespace pagoda
