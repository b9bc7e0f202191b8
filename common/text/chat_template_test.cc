// Golden renderings: testdata/templates.json, made by testdata/make_templates.py with transformers.
#include "common/text/chat_template.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "common/base/bytes.h"
#include "common/base/sha256.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace pagoda::text {
namespace {

using nlohmann::json;

json Golden() {
  std::ifstream file(PAGODA_TEXT_TESTDATA "/templates.json");
  return json::parse(file);
}

SpecialTokenText Tokens(const json& golden) {
  return {.bos = golden["tokens"]["bos_token"], .eos = golden["tokens"]["eos_token"]};
}

std::vector<ChatMessage> Messages(const json& chat) {
  std::vector<ChatMessage> messages;
  for (const auto& message : chat["messages"]) {
    messages.push_back({message["role"], message["content"]});
  }
  return messages;
}

std::string HexSha256(const std::string& text) { return ToHex(AsBytes(Sha256::Of(text))); }

std::vector<TextSpan> RenderOrDie(std::string_view source,
                                  const std::vector<ChatMessage>& messages) {
  return ChatTemplate::Parse(source).value().Render(messages, true).value();
}

TEST(ChatTemplateTest, TheUsualShapesRenderAsInTransformers) {
  json golden = Golden();
  for (const auto& entry : golden["own"]) {
    SCOPED_TRACE(entry["name"].get<std::string>());
    auto parsed = ChatTemplate::Parse(entry["source"].get<std::string>(), Tokens(golden));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    for (size_t i = 0; i < golden["chats"].size(); ++i) {
      const json& chat = golden["chats"][i];
      SCOPED_TRACE(chat.dump());
      auto spans = parsed->Render(Messages(chat), chat["add_generation_prompt"]);
      if (entry["texts"][i].is_null()) {
        EXPECT_EQ(spans.status().code(), absl::StatusCode::kInvalidArgument);
      } else {
        ASSERT_TRUE(spans.ok()) << spans.status();
        EXPECT_EQ(Join(*spans), entry["texts"][i].get<std::string>());
      }
    }
  }
}

TEST(ChatTemplateTest, PublishedTemplatesRenderAsInTransformersOrAreRefusedByName) {
  const char* shared = std::getenv("PAGODA_SHARED_DATA");
  if (shared == nullptr) GTEST_SKIP() << "no published templates: PAGODA_SHARED_DATA is not set";
  json golden = Golden();
  int rendered = 0;
  for (const auto& entry : golden["published"]) {
    std::string name = entry["file"];
    SCOPED_TRACE(name);
    std::ifstream file(std::filesystem::path(shared) / "tokenizers/chat-templates" / name);
    std::stringstream source;
    source << file.rdbuf();
    ASSERT_EQ(HexSha256(source.str()), entry["sha256"].get<std::string>()) << "another version";
    auto parsed = ChatTemplate::Parse(source.str(), Tokens(golden));
    if (!parsed.ok()) {
      EXPECT_EQ(parsed.status().code(), absl::StatusCode::kUnimplemented) << parsed.status();
      std::printf("refused: %s: %s\n", name.c_str(),
                  std::string(parsed.status().message()).c_str());
      continue;
    }
    ++rendered;
    for (size_t i = 0; i < golden["chats"].size(); ++i) {
      const json& chat = golden["chats"][i];
      SCOPED_TRACE(chat.dump());
      auto spans = parsed->Render(Messages(chat), chat["add_generation_prompt"]);
      EXPECT_EQ(spans.ok(), !entry["texts"][i].is_null()) << spans.status();
      if (spans.ok() && !entry["texts"][i].is_null()) {
        EXPECT_EQ(HexSha256(Join(*spans)), entry["texts"][i].get<std::string>()) << Join(*spans);
      }
    }
  }
  EXPECT_EQ(rendered, 5);
}

TEST(ChatTemplateTest, MarksFollowTheCharactersThroughStringOperations) {
  const char* source =
      "{{ '<|x|>' + messages[0].content | trim | upper }}{% set s = messages[0].content %}"
      "{{ s[2:5] ~ '|' ~ s.split(',')[1] ~ '|' ~ s.replace('b', '<y>') }}";
  auto spans = RenderOrDie(source, {{"user", " ab,cd "}});
  std::vector<TextSpan> expected = {{"<|x|>", Origin::kTemplate}, {"AB,CDb,c", Origin::kMessage},
                                    {"|", Origin::kTemplate},     {"cd ", Origin::kMessage},
                                    {"|", Origin::kTemplate},     {" a", Origin::kMessage},
                                    {"<y>", Origin::kTemplate},   {",cd ", Origin::kMessage}};
  EXPECT_EQ(spans, expected);
}

TEST(ChatTemplateTest, MarksFollowTheCharactersThroughJsonJoinsLoopsAndBlocks) {
  const char* source =
      "{% set block %}[{{ messages[0].content }}]{% endset %}{{ block }}"
      "{{ messages[0].content | tojson }}{{ [messages[0].content, 'z'] | join('+') }}"
      "{% for c in messages[0].content %}{{ c ~ loop.index }}{% endfor %}";
  auto spans = RenderOrDie(source, {{"user", "a\n"}});
  std::vector<TextSpan> expected = {
      {"[", Origin::kTemplate},   {"a\n", Origin::kMessage}, {"]\"", Origin::kTemplate},
      {"a\\n", Origin::kMessage}, {"\"", Origin::kTemplate}, {"a\n", Origin::kMessage},
      {"+z", Origin::kTemplate},  {"a", Origin::kMessage},   {"1", Origin::kTemplate},
      {"\n", Origin::kMessage},   {"2", Origin::kTemplate}};
  EXPECT_EQ(spans, expected);
}

TEST(ChatTemplateTest, OnlyWellKnownRolesCountAsTemplateText) {
  auto spans = RenderOrDie("{% for m in messages %}<{{ m.role }}>{% endfor %}",
                           {{"user", ""}, {"user|>", ""}, {"tool", ""}});
  std::vector<TextSpan> expected = {
      {"<user><", Origin::kTemplate}, {"user|>", Origin::kMessage}, {"><tool>", Origin::kTemplate}};
  EXPECT_EQ(spans, expected);
}

TEST(ChatTemplateTest, AMessageThatIsNotUtf8IsRefusedWithItsPlace) {
  auto parsed = ChatTemplate::Parse("x");
  std::vector<ChatMessage> messages = {{"user", "fine"}, {"user", "ab\xFF"}};
  Status status = parsed->Render(messages, true).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "messages[1].content is not UTF-8 at byte 2");
}

TEST(ChatTemplateTest, TheTemplatesOwnRefusalReachesTheCaller) {
  auto parsed = ChatTemplate::Parse("{{ raise_exception('no ' + messages[0].role) }}");
  std::vector<ChatMessage> messages = {{"user", ""}};
  Status status = parsed->Render(messages, true).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "chat template: line 1: the chat template refuses: no user");
}

}  // namespace
}  // namespace pagoda::text
