#include "common/text/stop_strings.h"

#include <random>

#include "gtest/gtest.h"

namespace pagoda::text {
namespace {

// What comes out of `pieces`, a bar between the answers of the calls.
std::string Out(std::vector<std::string> stops, const std::vector<std::string>& pieces) {
  StopStrings strings(std::move(stops));
  std::string out;
  for (const std::string& piece : pieces) out += strings.Feed(piece) + "|";
  return out + strings.Finish() + (strings.found() ? "!" : "");
}

TEST(StopStringsTest, NothingOfAStopStringComesOutWhereverItIsCut) {
  EXPECT_EQ(Out({"END"}, {"one END two"}), "one |!");
  EXPECT_EQ(Out({"END"}, {"one E", "N", "D two", "three"}), "one ||||!");
  EXPECT_EQ(Out({"END"}, {"END"}), "|!");
}

TEST(StopStringsTest, WhatOnlyBeginsLikeOneIsHeldBackUntilItIsCertain) {
  EXPECT_EQ(Out({"END"}, {"aE", "N", "d", "x"}), "a||ENd|x|");
  EXPECT_EQ(Out({"END"}, {"aEN"}), "a|EN") << "the answer's end makes it certain";
  EXPECT_EQ(Out({"aab"}, {"a", "a", "a", "b"}), "||a||!");
}

TEST(StopStringsTest, WithoutAnyAllPasses) { EXPECT_EQ(Out({}, {"a", "b"}), "a|b|"); }

TEST(StopStringsTest, TheOneThatIsCompleteFirstCountsAndOfEqualEndsTheLongest) {
  EXPECT_EQ(Out({"bcd", "c"}, {"abcd"}), "ab|!");
  EXPECT_EQ(Out({"c", "abc", "bc"}, {"xabc"}), "x|!");
}

TEST(StopStringsTest, WhatPassesUnseenStartsNoStopString) {
  StopStrings strings({"END"});
  EXPECT_EQ(strings.Feed("E"), "");
  EXPECT_EQ(strings.Pass("ND E"), "END E");
  EXPECT_EQ(strings.Feed("ND"), "ND");
  EXPECT_FALSE(strings.found());
}

TEST(StopStringsTest, HowTheTextIsCutChangesNothing) {
  std::mt19937 random(5);
  auto letters = [&](size_t size) {
    std::string text;
    while (text.size() < size) text += static_cast<char>('a' + random() % 2);
    return text;
  };
  int found = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = 0; i <= random() % 3; ++i) stops.push_back(letters(1 + random() % 6));
    const std::string text = letters(random() % 24);
    // By definition: the first end of any, and the earliest start of those that end there.
    size_t begin = text.size(), end = text.size() + 1;
    for (size_t e = 1; e <= text.size() && end > text.size(); ++e) {
      for (const std::string& stop : stops) {
        if (!text.substr(0, e).ends_with(stop)) continue;
        end = e;
        begin = std::min(begin, e - stop.size());
      }
    }
    StopStrings strings(stops);
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % 4;
      out += strings.Feed(text.substr(at, size));
      at += size;
    }
    out += strings.Finish();
    ASSERT_EQ(out, text.substr(0, begin)) << text;
    ASSERT_EQ(strings.found(), end <= text.size());
    found += strings.found();
  }
  EXPECT_GT(found, 500);
  EXPECT_LT(found, 1900);
}

}  // namespace
}  // namespace pagoda::text
