#include "common/base/utf8.h"

#include "gtest/gtest.h"

namespace pagoda {
namespace {

TEST(Utf8Test, AcceptsTheFirstAndLastCodePointOfEachLength) {
  for (std::string_view text :
       {"\x7f", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(Utf8SequenceLength(text, 0), text.size());
  }
}

TEST(Utf8Test, RefusesOverlongFormsSurrogatesAndCutSequences) {
  for (std::string_view text : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
                                "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF",
                                "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xE2\x28\xA1"}) {
    EXPECT_EQ(Utf8SequenceLength(text, 0), 0u) << text;
  }
}

TEST(Utf8Test, FindsTheFirstBadByte) {
  EXPECT_EQ(Utf8ValidPrefix("caf\xC3\xA9 \xFFx"), 6u);
  EXPECT_EQ(Utf8ValidPrefix("ok"), 2u);
}

TEST(Utf8Test, WritesTheFirstAndLastCodePointOfEachLength) {
  std::string text;
  for (uint32_t code : {0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    AppendUtf8(text, code);
  }
  EXPECT_EQ(text,
            "\x7f"
            "\xC2\x80"
            "\xDF\xBF"
            "\xE0\xA0\x80"
            "\xEF\xBF\xBF"
            "\xF0\x90\x80\x80"
            "\xF4\x8F\xBF\xBF");
}

}  // namespace
}  // namespace pagoda
