// The subset against Jinja2 itself: testdata/jinja.json, made by testdata/make_jinja.py.
#include <fstream>
#include <string>

#include "common/text/jinja/template.h"
#include "common/text/jinja/value.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace pagoda::text::jinja {
namespace {

using nlohmann::ordered_json;

ordered_json Golden() {
  std::ifstream file(PAGODA_TEXT_TESTDATA "/jinja.json");
  return ordered_json::parse(file);
}

Value FromJson(const ordered_json& json) {
  if (json.is_null()) return None{};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_string()) return MakeString(json.get<std::string>(), Origin::kMessage);
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(FromJson(item));
    return MakeList(std::move(items), ListKind::kList).value();
  }
  std::vector<std::pair<StringRef, Value>> entries;
  for (const auto& [key, value] : json.items()) {
    entries.emplace_back(std::make_shared<const MarkedString>(key, Origin::kMessage),
                         FromJson(value));
  }
  return MakeDict(std::move(entries)).value();
}

Variables VariablesOf(const ordered_json& golden) {
  Variables variables;
  for (const auto& [name, value] : golden["variables"].items()) {
    variables.emplace_back(name, FromJson(value));
  }
  return variables;
}

TEST(JinjaGoldenTest, SnippetsRenderAsInJinja2OrFailWhereItRaises) {
  ordered_json golden = Golden();
  Variables variables = VariablesOf(golden);
  ASSERT_GT(golden["snippets"].size(), 250u);
  for (const auto& snippet : golden["snippets"]) {
    std::string source = snippet["source"];
    SCOPED_TRACE(source);
    auto parsed = Template::Parse(source);
    auto text =
        parsed.ok() ? (*parsed)->Render(variables) : StatusOr<MarkedString>(parsed.status());
    if (snippet["output"].is_null()) {
      EXPECT_FALSE(text.ok()) << text->text();
    } else {
      ASSERT_TRUE(text.ok()) << text.status();
      EXPECT_EQ(text->text(), snippet["output"].get<std::string>());
    }
  }
}

TEST(JinjaGoldenTest, WhatTheSubsetLacksIsRefusedByNameWhenParsed) {
  ordered_json golden = Golden();
  for (const auto& refused : golden["refused"]) {
    std::string source = refused["source"];
    SCOPED_TRACE(source);
    Status status = Template::Parse(source).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    std::string words = refused["words"];
    EXPECT_NE(status.message().find(words), std::string::npos) << status;
    EXPECT_EQ(status.message().substr(0, 8), "line 1: ") << status;
  }
}

TEST(JinjaGoldenTest, UsesOfValuesThatWouldComeOutWrongAreRefusedWhenRendered) {
  ordered_json golden = Golden();
  Variables variables = VariablesOf(golden);
  for (const std::string source : golden["refused_in_use"]) {
    SCOPED_TRACE(source);
    auto parsed = Template::Parse(source);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    auto text = (*parsed)->Render(variables);
    EXPECT_FALSE(text.ok()) << text->text();
  }
}

}  // namespace
}  // namespace pagoda::text::jinja
