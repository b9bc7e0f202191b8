#include "services/router/openai/json_fields.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/router/field_error.h"

namespace pagoda::router::openai {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string ParseError(std::string_view body) {
  auto parsed = ParseJsonObject(body);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << body;
  return std::string(parsed.status().message());
}

TEST(JsonFieldsTest, WhatIsNotAJsonObjectIsRefusedWithItsPlace) {
  EXPECT_THAT(ParseError(""), HasSubstr("byte 1"));
  EXPECT_THAT(ParseError("{\"a\":}"), HasSubstr("byte 6"));
  EXPECT_THAT(ParseError("{\"a\":1}x"), HasSubstr("byte 8"));
  EXPECT_THAT(ParseError("{\"a\":NaN}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(ParseError("{\"a\":-Infinity}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(ParseError("{\"a\":1e999}"), HasSubstr("out of range"));
  EXPECT_THAT(ParseError("[1]"), HasSubstr("an array"));
  EXPECT_THAT(ParseError("\"x\""), HasSubstr("a string"));
}

TEST(JsonFieldsTest, InvalidUtf8AndLoneSurrogatesAreRefused) {
  EXPECT_THAT(ParseError("{\"a\":\"\xff\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(ParseError("{\"a\":\"\xed\xa0\x80\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(ParseError("{\"a\":\"\\ud800\"}"), HasSubstr("UTF-8"));
}

TEST(JsonFieldsTest, DeepNestingIsRefusedBeforeItIsParsed) {
  std::string deep(1 << 20, '[');
  EXPECT_THAT(ParseError("{\"a\":" + deep), HasSubstr("limit is 32"));
  std::string fits = "{\"a\":" + std::string(31, '[') + std::string(31, ']') + "}";
  EXPECT_TRUE(ParseJsonObject(fits).ok());
  // Brackets inside strings do not nest.
  EXPECT_TRUE(ParseJsonObject("{\"a\":\"" + std::string(100, '[') + "\\\"[\"}").ok());
}

std::string Repeated(std::string_view part, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += part;
  return text;
}

TEST(JsonFieldsTest, ManySmallValuesAreRefusedBeforeTheyTakeMemory) {
  const size_t nodes = kMaxJsonNodes;
  EXPECT_THAT(ParseError("{\"a\":[" + Repeated("[],", nodes) + "0]}"),
              HasSubstr("limit is 262144"));
  EXPECT_THAT(ParseError("{\"a\":[" + Repeated("{},", nodes) + "0]}"),
              HasSubstr("limit is 262144"));
  EXPECT_THAT(ParseError("{\"a\":[" + Repeated("\"\",", nodes) + "0]}"),
              HasSubstr("limit is 262144"));
  EXPECT_THAT(ParseError("{" + Repeated("\"k\":0,", nodes) + "\"a\":0}"),
              HasSubstr("limit is 262144"));
  EXPECT_THAT(ParseError("{\"a\":[" + Repeated("1,", kMaxJsonValues) + "1]}"),
              HasSubstr("limit is 2097152"));
  // A prompt of a million ids, and what strings hold, are fine.
  EXPECT_TRUE(ParseJsonObject("{\"a\":[" + Repeated("7,", 1 << 20) + "7]}").ok());
  EXPECT_TRUE(ParseJsonObject("{\"a\":\"" + Repeated("[{,\\\"", kMaxJsonNodes) + "\"}").ok());
}

TEST(JsonFieldsTest, OfEqualKeysTheLastOneCounts) {
  auto object = ParseJsonObject("{\"a\":1,\"a\":2}");
  ASSERT_TRUE(object.ok());
  EXPECT_EQ(*JsonFields(*object).Int("a", 0, 10), 2);
}

TEST(JsonFieldsTest, NullAndAbsentAreTheSame) {
  json object = {{"a", nullptr}};
  JsonFields fields(object);
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(*fields.Bool(name), std::nullopt);
    EXPECT_EQ(*fields.String(name), std::nullopt);
    EXPECT_EQ(*fields.Number(name), std::nullopt);
    EXPECT_EQ(*fields.Int(name, 0, 1), std::nullopt);
  }
}

TEST(JsonFieldsTest, WrongTypesAndRangesNameFieldValueAndLimit) {
  json object = {{"i", 11}, {"f", 1.5}, {"s", "text"}, {"u", UINT64_MAX}, {"b", true}};
  JsonFields fields(object, "messages[3].");
  auto message = [](const auto& result) { return std::string(result.status().message()); };
  EXPECT_EQ(message(fields.Int("i", 0, 10)), "messages[3].i: 11 is not between 0 and 10");
  EXPECT_EQ(message(fields.Int("f", 0, 10)), "messages[3].f: 1.5 is not a whole number");
  EXPECT_THAT(message(fields.Int("u", 0, INT64_MAX)), HasSubstr("18446744073709551615"));
  EXPECT_EQ(message(fields.Bool("i")), "messages[3].i: 11 is not true or false");
  EXPECT_EQ(message(fields.Number("s")), "messages[3].s: a string is not a number");
  EXPECT_EQ(message(fields.String("b")), "messages[3].b: true is not a string");
  EXPECT_EQ(ErrorField(fields.String("b").status()), "messages[3].b");
}

}  // namespace
}  // namespace pagoda::router::openai
