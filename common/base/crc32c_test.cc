#include "common/base/crc32c.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace pagoda {
namespace {

uint32_t Crc(std::string_view text) { return Crc32c(text.data(), text.size()); }

// RFC 3720, appendix B.4 (the RFC prints the bytes of each CRC in order of transmission).
TEST(Crc32cTest, AgreesWithTheVectorsOfRfc3720) {
  EXPECT_EQ(Crc(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc(std::string(32, '\xff')), 0x62a8ab43u);
  std::string up, down;
  for (int i = 0; i < 32; ++i) {
    up.push_back(static_cast<char>(i));
    down.push_back(static_cast<char>(31 - i));
  }
  EXPECT_EQ(Crc(up), 0x46dd794eu);
  EXPECT_EQ(Crc(down), 0x113fdb5cu);
}

TEST(Crc32cTest, AgreesWithTheCheckValueOfTheCatalogue) {
  EXPECT_EQ(Crc("123456789"), 0xe3069283u);
}

TEST(Crc32cTest, ContinuesFromAnEarlierSum) {
  std::string text(100'000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31);
  for (size_t cut : {size_t{0}, size_t{1}, size_t{16'384}, size_t{99'999}, text.size()}) {
    uint32_t head = Crc32c(text.data(), cut);
    EXPECT_EQ(Crc32c(text.data() + cut, text.size() - cut, head), Crc(text)) << cut;
  }
}

TEST(Crc32cTest, CopyWithCrcCopiesAndSums) {
  std::string text(50'001, 'y');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 17);
  std::string copy(text.size(), '\0');
  EXPECT_EQ(CopyWithCrc32c(copy.data(), text.data(), text.size()), Crc(text));
  EXPECT_EQ(copy, text);
}

}  // namespace
}  // namespace pagoda
