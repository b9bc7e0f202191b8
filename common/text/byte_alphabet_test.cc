#include "common/text/byte_alphabet.h"

#include <set>

#include "gtest/gtest.h"

namespace pagoda::text {
namespace {

TEST(ByteAlphabetTest, EveryByteHasACharacterOfItsOwnAndComesBack) {
  std::set<std::string> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string& character = ByteCharacters()[byte];
    EXPECT_TRUE(seen.insert(character).second);
    EXPECT_EQ(BytesOfPrintable(character), std::string(1, static_cast<char>(byte)));
  }
}

TEST(ByteAlphabetTest, TheCharactersAreThoseOfGpt2) {
  EXPECT_EQ(ByteCharacters()['!'], "!");
  EXPECT_EQ(ByteCharacters()['~'], "~");
  EXPECT_EQ(ByteCharacters()[0x00], "\u0100");
  EXPECT_EQ(ByteCharacters()['\n'], "\u010A");
  EXPECT_EQ(ByteCharacters()[' '], "\u0120");
  EXPECT_EQ(ByteCharacters()[0x7F], "\u0121");
  EXPECT_EQ(ByteCharacters()[0xA0], "\u0142");
  EXPECT_EQ(ByteCharacters()[0xAD], "\u0143");
  EXPECT_EQ(ByteCharacters()[0xFF], "\u00FF");
}

TEST(ByteAlphabetTest, TextOutsideTheAlphabetStandsForNoBytes) {
  EXPECT_EQ(BytesOfPrintable("a b"), std::nullopt);     // a raw space
  EXPECT_EQ(BytesOfPrintable("\u0144"), std::nullopt);  // one past the last
  EXPECT_EQ(BytesOfPrintable("\u4E2D"), std::nullopt);
  EXPECT_EQ(BytesOfPrintable("\xC4"), std::nullopt);  // cut short
  EXPECT_EQ(BytesOfPrintable(""), "");
}

}  // namespace
}  // namespace pagoda::text
