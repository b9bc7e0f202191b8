#include "services/ctl/conversation.h"

#include <nlohmann/json.hpp>

#include "common/base/mutex.h"
#include "common/http/http_server.h"
#include "gtest/gtest.h"

namespace pagoda::ctl {
namespace {

using nlohmann::json;

// Answers every chat with the same words and keeps what it was asked.
class FakeRouter {
 public:
  FakeRouter() {
    http::HttpRoutes routes;
    routes.Add("POST", "/v1/chat/completions",
               [this](http::HttpRequest request, std::shared_ptr<http::Responder> responder) {
                 Answer(std::move(request), *responder);
               });
    server_ = *http::HttpServer::Start({}, std::move(routes));
  }
  ~FakeRouter() { server_->Stop(); }

  void RefuseNext() {
    MutexLock lock(mutex_);
    refuse_ = true;
  }
  http::HttpRequest last() const {
    MutexLock lock(mutex_);
    return last_;
  }
  http::HttpClient client() const { return *http::HttpClient::Create(server_->address()); }

 private:
  void Answer(http::HttpRequest request, http::Responder& responder) {
    MutexLock lock(mutex_);
    last_ = std::move(request);
    if (std::exchange(refuse_, false)) {
      responder.Send(http::ErrorResponse({.status = 400, .message = "unknown worker \"x\""}));
      return;
    }
    responder.Start(200, {{"Content-Type", "text/event-stream"}, {"x-pagoda-worker", "worker-1"}});
    responder.Write("data: {\"choices\":[{\"delta\":{\"content\":\"Good \"}}]}\n\n");
    responder.Write("data: {\"choices\":[{\"delta\":{\"content\":\"day\"}}]}\n\ndata: [DONE]\n\n");
    responder.Finish();
  }

  mutable Mutex mutex_;
  bool refuse_ ABSL_GUARDED_BY(mutex_) = false;
  http::HttpRequest last_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<http::HttpServer> server_;
};

json Messages(const FakeRouter& router) { return json::parse(router.last().body)["messages"]; }

TEST(ConversationTest, AnswersBecomePartOfTheNextRequest) {
  FakeRouter router;
  Conversation conversation(router.client(), {}, "Be kind.");
  std::string streamed;
  auto answer = conversation.Ask("Hi", [&](std::string_view text) { streamed += text; });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->text, "Good day");
  EXPECT_EQ(streamed, "Good day");
  EXPECT_EQ(answer->worker, "worker-1");
  ASSERT_TRUE(conversation.Ask("And now?", [](std::string_view) {}).ok());
  EXPECT_EQ(Messages(router), json::parse(R"([{"role":"system","content":"Be kind."},
                                              {"role":"user","content":"Hi"},
                                              {"role":"assistant","content":"Good day"},
                                              {"role":"user","content":"And now?"}])"));
}

TEST(ConversationTest, OptionsAreSentOnlyWhenGiven) {
  FakeRouter router;
  Conversation plain(router.client(), {});
  ASSERT_TRUE(plain.Ask("Hi", [](std::string_view) {}).ok());
  json body = json::parse(router.last().body);
  EXPECT_EQ(body, json::parse(R"({"model":"default","messages":[{"role":"user","content":"Hi"}],
                                  "stream":true,"stream_options":{"include_usage":true}})"));
  EXPECT_FALSE(http::FindHeader(router.last().headers, "x-pagoda-worker"));

  Conversation full(
      router.client(),
      {.temperature = 0.0, .max_tokens = 48, .cache_scope = "none", .worker = "worker-0"});
  ASSERT_TRUE(full.Ask("Hi", [](std::string_view) {}).ok());
  body = json::parse(router.last().body);
  EXPECT_EQ(body["temperature"], 0.0);
  EXPECT_EQ(body["max_tokens"], 48);
  EXPECT_EQ(body["cache_scope"], "none");
  EXPECT_EQ(http::FindHeader(router.last().headers, "x-pagoda-worker"), "worker-0");
}

TEST(ConversationTest, ARefusedMessageIsForgotten) {
  FakeRouter router;
  Conversation conversation(router.client(), {});
  router.RefuseNext();
  auto refused = conversation.Ask("Bad", [](std::string_view) {});
  EXPECT_EQ(refused.status().message(), "unknown worker \"x\" (HTTP 400)");
  ASSERT_TRUE(conversation.Ask("Good", [](std::string_view) {}).ok());
  EXPECT_EQ(Messages(router), json::parse(R"([{"role":"user","content":"Good"}])"));
}

TEST(ConversationTest, NobodyListeningIsUnavailable) {
  std::optional<http::HttpClient> client;
  {
    FakeRouter router;
    client = router.client();
  }
  Conversation conversation(*client, {});
  EXPECT_EQ(conversation.Ask("Hi", [](std::string_view) {}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(ConversationTest, WhatIsNotUtf8DoesNotEndTheProgram) {
  FakeRouter router;
  Conversation conversation(router.client(), {});
  EXPECT_TRUE(conversation.Ask("caf\xe9", [](std::string_view) {}).ok());
}

}  // namespace
}  // namespace pagoda::ctl
