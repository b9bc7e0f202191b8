#include "services/router/openai/request_parser.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/router/field_error.h"

namespace pagoda::router::openai {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CompletionRequest Chat(json extra = json::object()) {
  json body = {{"model", "m"}, {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  body.update(extra);
  auto parsed = ParseChatRequest(body.dump());
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *parsed : CompletionRequest();
}

Status ChatError(json extra) {
  json body = {{"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  body.update(extra);
  return ParseChatRequest(body.dump()).status();
}

CompletionRequest Text(json prompt) {
  auto parsed = ParseCompletionRequest(json{{"prompt", prompt}}.dump());
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *parsed : CompletionRequest();
}

Status PromptError(json prompt) {
  return ParseCompletionRequest(json{{"prompt", prompt}}.dump()).status();
}

TEST(RequestParserTest, ReadsAChat) {
  CompletionRequest request =
      Chat({{"messages",
             {{{"role", "system"}, {"content", "be brief"}},
              {{"role", "user"},
               {"name", "ann"},
               {"content", {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}}}},
              {{"role", "assistant"}, {"content", nullptr}}}},
            {"temperature", 0.5},
            {"top_p", 0.25},
            {"top_k", 7},
            {"seed", -1},
            {"max_tokens", 5},
            {"max_completion_tokens", 9},
            {"stop_token_ids", {3, 4}},
            {"ignore_eos", true},
            {"cache_scope", "shared"},
            {"priority", -3},
            {"return_token_ids", true},
            {"stream", true},
            {"stream_options", {{"include_usage", true}}}});
  ASSERT_EQ(request.prompts.size(), 1u);
  const v1::GenerateRequest& generate = request.prompts[0];
  EXPECT_EQ(generate.model(), "m");
  ASSERT_EQ(generate.chat().messages_size(), 3);
  EXPECT_EQ(generate.chat().messages(0).content(), "be brief");
  EXPECT_EQ(generate.chat().messages(1).content(), "ab");
  EXPECT_EQ(generate.chat().messages(2).content(), "");
  EXPECT_EQ(generate.sampling().temperature(), 0.5f);
  EXPECT_EQ(generate.sampling().top_p(), 0.25f);
  EXPECT_EQ(generate.sampling().top_k(), 7u);
  EXPECT_EQ(generate.sampling().seed(), UINT64_MAX);
  EXPECT_EQ(generate.stop().max_tokens(), 9u);  // the newer name wins
  EXPECT_THAT(generate.stop().stop_token_ids(), ElementsAre(3, 4));
  EXPECT_TRUE(generate.stop().ignore_eos());
  EXPECT_EQ(generate.cache_scope().kind(), v1::CacheScope::SHARED);
  EXPECT_EQ(generate.priority(), -3);
  EXPECT_TRUE(request.return_token_ids);
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
}

TEST(RequestParserTest, ReadsPenaltiesAndBiases) {
  CompletionRequest request = Chat({{"min_p", 0.125},
                                    {"presence_penalty", 0.5},
                                    {"frequency_penalty", -0.25},
                                    {"repetition_penalty", 1.5},
                                    {"logit_bias", {{"5", -100}, {"17", 2.5}}},
                                    {"min_tokens", 3}});
  const v1::SamplingParams& sampling = request.prompts[0].sampling();
  EXPECT_EQ(sampling.min_p(), 0.125f);
  EXPECT_EQ(sampling.presence_penalty(), 0.5f);
  EXPECT_EQ(sampling.frequency_penalty(), -0.25f);
  EXPECT_EQ(sampling.repetition_penalty(), 1.5f);
  ASSERT_EQ(sampling.logit_bias_size(), 2);
  EXPECT_EQ(sampling.logit_bias().at(5), -100);
  EXPECT_EQ(sampling.logit_bias().at(17), 2.5f);
  EXPECT_EQ(request.prompts[0].stop().min_tokens(), 3u);
  EXPECT_EQ(ErrorField(ChatError({{"logit_bias", {{"5", 101}}}})), "logit_bias.5");
}

TEST(RequestParserTest, ChoicesAreBoundedAlsoInAll) {
  EXPECT_EQ(Chat({{"n", 3}}).n, 3u);
  EXPECT_EQ(Chat().n, 1u);
  const json nine(std::vector<json>(9, "q"));
  Status status = ParseCompletionRequest(json{{"prompt", nine}, {"n", 16}}.dump()).status();
  EXPECT_EQ(ErrorField(status), "n") << status;
  EXPECT_TRUE(ParseCompletionRequest(json{{"prompt", nine}, {"n", 14}}.dump()).ok());
}

TEST(RequestParserTest, ReadsStopStrings) {
  EXPECT_THAT(Chat({{"stop", "x"}}).prompts[0].stop().stop(), ElementsAre("x"));
  EXPECT_THAT(Chat({{"stop", {"x", "", "y"}}}).prompts[0].stop().stop(), ElementsAre("x", "y"));
  EXPECT_THAT(Chat({{"stop", ""}}).prompts[0].stop().stop(), ElementsAre());
}

TEST(RequestParserTest, AbsentFieldsStayUnset) {
  CompletionRequest request = Chat();
  const v1::GenerateRequest& generate = request.prompts[0];
  EXPECT_FALSE(generate.sampling().has_temperature());
  EXPECT_FALSE(generate.sampling().has_top_p());
  EXPECT_FALSE(generate.sampling().has_seed());
  EXPECT_FALSE(generate.stop().has_max_tokens());
  EXPECT_EQ(generate.cache_scope().kind(), v1::CacheScope::TENANT);
  EXPECT_FALSE(request.stream);
}

TEST(RequestParserTest, UnknownFieldsAndNeutralValuesPass) {
  Chat({{"user", "ann"},
        {"metadata", {{"a", 1}}},
        {"n", 1},
        {"stop", json::array()},
        {"presence_penalty", 0},
        {"frequency_penalty", 0.0},
        {"repetition_penalty", 1.0},
        {"logit_bias", json::object()},
        {"logprobs", false},
        {"top_logprobs", nullptr},
        {"min_p", 0},
        {"tools", json::array()},
        {"tool_choice", "none"},
        {"response_format", {{"type", "text"}}}});
}

TEST(RequestParserTest, WhatIsNotBuiltIsRefusedByName) {
  for (auto& [name, value] :
       std::vector<std::pair<std::string, json>>{{"best_of", 3},
                                                 {"logprobs", true},
                                                 {"logprobs", 0},
                                                 {"logprobs", json::object()},
                                                 {"echo", ""},
                                                 {"top_logprobs", 2},
                                                 {"echo", true},
                                                 {"suffix", "x"},
                                                 {"tools", {{{"type", "function"}}}},
                                                 {"response_format", {{"type", "json_object"}}}}) {
    Status status = ChatError({{name, value}});
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << name;
    EXPECT_EQ(ErrorField(status), name);
  }
}

TEST(RequestParserTest, BadValuesNameTheirField) {
  for (auto& [name, value] : std::vector<std::pair<std::string, json>>{
           {"temperature", 2.5},
           {"temperature", -0.1},
           {"temperature", "hot"},
           {"top_p", 0},
           {"top_p", 1.01},
           {"top_k", -2},
           {"top_k", 1.5},
           {"min_p", -0.1},
           {"min_tokens", -1},
           {"presence_penalty", json::array()},
           {"presence_penalty", 2.5},
           {"frequency_penalty", -2.5},
           {"repetition_penalty", 0},
           {"logit_bias", ""},
           {"logit_bias", {{"x", 1}}},
           {"logit_bias", {{"-5", 1}}},
           {"seed", "x"},
           {"max_tokens", 0},
           {"max_tokens", -1},
           {"max_tokens", 5000000000},
           {"max_completion_tokens", 0},
           {"n", 0},
           {"n", 17},
           {"n", ""},
           {"stop", json::object()},
           {"stop", {"a", 5}},
           {"stop_token_ids", 3},
           {"stop_token_ids", {-1}},
           {"stop_token_ids", {"a"}},
           {"ignore_eos", 1},
           {"cache_scope", "mine"},
           {"cache_scope", {{"shared_tokens", 3}}},
           {"priority", 101},
           {"stream", "yes"},
           {"return_token_ids", 1},
           {"stream_options", {{"include_usage", true}}},  // without stream
           {"model", 5},
           {"messages", "hi"},
           {"messages", json::array()}}) {
    Status status = ChatError({{name, value}});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name << " " << value;
    EXPECT_EQ(ErrorField(status), name) << status;
  }
}

TEST(RequestParserTest, BadMessagesNameTheirPlace) {
  auto field = [](json message) { return ErrorField(ChatError({{"messages", {message}}})); };
  EXPECT_EQ(field(3), "messages[0]");
  EXPECT_EQ(field({{"content", "x"}}), "messages[0].role");
  EXPECT_EQ(field({{"role", 1}, {"content", "x"}}), "messages[0].role");
  EXPECT_EQ(field({{"role", "user"}, {"content", 5}}), "messages[0].content");
  EXPECT_EQ(field({{"role", "user"}, {"content", {5}}}), "messages[0].content[0]");
  EXPECT_EQ(field({{"role", "user"}, {"content", {{{"type", "image_url"}}}}}),
            "messages[0].content[0].type");
  EXPECT_EQ(field({{"role", "user"}, {"content", {{{"type", "text"}}}}}),
            "messages[0].content[0].text");
}

TEST(RequestParserTest, APromptHasFourForms) {
  EXPECT_EQ(Text("abc").prompts[0].text(), "abc");
  CompletionRequest strings = Text({"a", "b"});
  ASSERT_EQ(strings.prompts.size(), 2u);
  EXPECT_EQ(strings.prompts[1].text(), "b");
  EXPECT_THAT(Text({1, 2, 3}).prompts[0].tokens().ids(), ElementsAre(1, 2, 3));
  CompletionRequest lists = Text(json::array({json::array({1, 2}), json::array({3})}));
  ASSERT_EQ(lists.prompts.size(), 2u);
  EXPECT_THAT(lists.prompts[1].tokens().ids(), ElementsAre(3));
}

TEST(RequestParserTest, BadPromptsNameTheirPlace) {
  EXPECT_EQ(ErrorField(PromptError(nullptr)), "prompt");
  EXPECT_EQ(ErrorField(PromptError(5)), "prompt");
  EXPECT_EQ(ErrorField(PromptError(json::array())), "prompt");
  EXPECT_EQ(ErrorField(PromptError({1, "a"})), "prompt[1]");
  EXPECT_EQ(ErrorField(PromptError({1, -2})), "prompt[1]");
  EXPECT_EQ(ErrorField(PromptError({1.5})), "prompt[0]");
  EXPECT_EQ(ErrorField(PromptError({"a", 5})), "prompt[1]");
  EXPECT_EQ(ErrorField(PromptError(json::array({json::array({1}), json::array()}))), "prompt[1]");
  EXPECT_THAT(std::string(PromptError(json(std::vector<std::string>(129, "x"))).message()),
              HasSubstr("limit of 128"));
}

}  // namespace
}  // namespace pagoda::router::openai
