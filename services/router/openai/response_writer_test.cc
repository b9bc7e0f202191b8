#include "services/router/openai/response_writer.h"

#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace pagoda::router::openai {
namespace {

using nlohmann::json;

ResponseWriter Writer(Api api, bool usage = false, bool ids = false) {
  return ResponseWriter({.api = api,
                         .request_id = "abc",
                         .model = "m\"1",
                         .created_seconds = 17,
                         .fingerprint = "0123456789ab",
                         .include_usage = usage,
                         .return_token_ids = ids});
}

json Event(const std::string& event) {
  EXPECT_EQ(event.substr(0, 6), "data: ");
  EXPECT_EQ(event.substr(event.size() - 2), "\n\n");
  return json::parse(event.substr(6));
}

v1::Usage SomeUsage() {
  v1::Usage usage;
  usage.set_prompt_tokens(10);
  usage.set_completion_tokens(3);
  usage.set_computed(4);
  usage.set_local(1);
  usage.set_ram(2);
  usage.set_disk(3);
  usage.set_recomputed(5);
  usage.set_pushed(6);
  usage.set_retries(1);
  usage.set_resumed(7);
  usage.add_workers("w0");
  return usage;
}

TEST(ResponseWriterTest, AWholeChatHasAllFieldsOfAStrictClient) {
  Choice choice{.text = "a\n\"é", .token_ids = {1}, .prompt_ids = {2}, .finish = v1::STOP};
  json body = json::parse(Writer(Api::kChat).Whole({&choice, 1}, SomeUsage()));
  EXPECT_EQ(body["id"], "chatcmpl-abc");
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["created"], 17);
  EXPECT_EQ(body["model"], "m\"1");
  EXPECT_EQ(body["system_fingerprint"], "0123456789ab");
  json expected = {
      {"index", 0},
      {"message", {{"role", "assistant"}, {"content", "a\n\"é"}, {"refusal", nullptr}}},
      {"logprobs", nullptr},
      {"finish_reason", "stop"}};
  EXPECT_EQ(body["choices"], json::array({expected}));
  json usage = {{"prompt_tokens", 10},
                {"completion_tokens", 3},
                {"total_tokens", 13},
                {"prompt_tokens_details", {{"cached_tokens", 6}}},
                {"pagoda",
                 {{"computed", 4},
                  {"local", 1},
                  {"ram", 2},
                  {"disk", 3},
                  {"recomputed", 5},
                  {"pushed", 6},
                  {"resumed", 7},
                  {"retries", 1},
                  {"workers", {"w0"}}}}};
  EXPECT_EQ(body["usage"], usage);
}

TEST(ResponseWriterTest, AWholeCompletionHasTextAndItsIds) {
  std::vector<Choice> choices = {
      {.text = "a", .token_ids = {1, 2}, .prompt_ids = {3}, .finish = v1::LENGTH},
      {.text = "b", .token_ids = {}, .prompt_ids = {4}, .finish = v1::STOP}};
  json body = json::parse(Writer(Api::kCompletions, false, true).Whole(choices, SomeUsage()));
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["id"], "cmpl-abc");
  json first = {{"index", 0},          {"text", "a"},
                {"logprobs", nullptr}, {"finish_reason", "length"},
                {"token_ids", {1, 2}}, {"prompt_token_ids", {3}}};
  EXPECT_EQ(body["choices"][0], first);
  EXPECT_EQ(body["choices"][1]["index"], 1);
}

TEST(ResponseWriterTest, AChatStreamBeginsWithTheRoleAndEndsWithAnEmptyDelta) {
  ResponseWriter writer = Writer(Api::kChat);
  json first = Event(writer.FirstEvent(0, {}));
  EXPECT_EQ(first["object"], "chat.completion.chunk");
  EXPECT_EQ(first["choices"][0]["delta"], json({{"role", "assistant"}, {"content", ""}}));
  EXPECT_TRUE(first["choices"][0]["finish_reason"].is_null());
  EXPECT_FALSE(first.contains("usage"));
  json text = Event(writer.TextEvent(0, "x", {}));
  EXPECT_EQ(text["choices"][0]["delta"], json({{"content", "x"}}));
  json last = Event(writer.FinishEvent(0, v1::LENGTH));
  EXPECT_EQ(last["choices"][0]["delta"], json::object());
  EXPECT_EQ(last["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(writer.UsageEvent(SomeUsage()), "");
  for (const json& event : {first, text, last}) {
    EXPECT_EQ(event["id"], "chatcmpl-abc");
    EXPECT_EQ(event["created"], 17);
  }
}

TEST(ResponseWriterTest, WithIncludeUsageEveryChunkSaysNullAndTheLastHasIt) {
  ResponseWriter writer = Writer(Api::kCompletions, true);
  EXPECT_EQ(writer.FirstEvent(0, {}), "");
  EXPECT_TRUE(Event(writer.TextEvent(0, "x", {})).at("usage").is_null());
  EXPECT_TRUE(Event(writer.FinishEvent(0, v1::STOP)).at("usage").is_null());
  json usage = Event(writer.UsageEvent(SomeUsage()));
  EXPECT_EQ(usage["choices"], json::array());
  EXPECT_EQ(usage["usage"]["total_tokens"], 13);
}

TEST(ResponseWriterTest, TokenIdsStandWhereVllmPutsThem) {
  std::vector<uint32_t> ids = {7, 8};
  ResponseWriter chat = Writer(Api::kChat, false, true);
  EXPECT_EQ(Event(chat.FirstEvent(0, ids))["prompt_token_ids"], json({7, 8}));
  EXPECT_EQ(Event(chat.TextEvent(0, "", ids))["choices"][0]["token_ids"], json({7, 8}));
  ResponseWriter text = Writer(Api::kCompletions, false, true);
  EXPECT_EQ(Event(text.FirstEvent(0, ids))["choices"][0]["prompt_token_ids"], json({7, 8}));
}

TEST(ResponseWriterTest, UsageOfSeveralChoicesAddsUp) {
  v1::Usage sum;
  AddUsage(SomeUsage(), &sum);
  v1::Usage other = SomeUsage();
  other.set_workers(0, "w1");
  AddUsage(other, &sum);
  AddUsage(SomeUsage(), &sum);
  EXPECT_EQ(sum.completion_tokens(), 9u);
  EXPECT_EQ(sum.computed() + sum.local() + sum.ram() + sum.disk(), sum.prompt_tokens());
  EXPECT_EQ(sum.workers_size(), 2);
}

}  // namespace
}  // namespace pagoda::router::openai
