// The router end to end over HTTP, in front of fake workers.
#include <grpcpp/client_context.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "common/http/http_client.h"
#include "common/http/testing/loopback_socket.h"
#include "common/model/testing/gguf_writer.h"
#include "common/rpc/channel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pagoda/v1/inference.grpc.pb.h"
#include "services/router/testing/fake_worker.h"
#include "services/router/testing/test_model.h"

namespace pagoda::router {
namespace {

using nlohmann::json;
using testing::AnswerText;
using ::testing::ElementsAre;
using testing::FakeAnswer;
using testing::FakeWorker;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

FakeWorker::Script Says(std::string text) {
  return [text](const v1::WorkerGenerateRequest& request) { return AnswerText(request, text); };
}

FakeWorker::Script Fails(Status status) {
  return [status](const v1::WorkerGenerateRequest&) { return FakeAnswer{.status = status}; };
}

constexpr GenerationLimits kShortWait{.resume_wait = std::chrono::milliseconds(50)};

class RouterHttpTest : public ::testing::Test {
 protected:
  explicit RouterHttpTest(RouterServer::Options options = {.served_names = {"tiny"},
                                                           .allow_placement_override = true,
                                                           .limits = kShortWait})
      : router_(testing::StartTestRouter(std::move(options))),
        client_(*http::HttpClient::Create(router_->http_address())) {}

  FakeWorker& Add(std::string name, FakeWorker::Script script) {
    workers_.push_back(std::make_unique<FakeWorker>(std::move(name), std::move(script)));
    workers_.back()->Join(router_->grpc_address());
    return *workers_.back();
  }

  static TimePoint Deadline() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(20);
  }

  http::HttpResponse Post(std::string path, const json& body, http::HttpHeaders headers = {}) {
    auto response = client_.Post(path, body.dump(), Deadline(), std::move(headers));
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : http::HttpResponse{.status = 0};
  }
  http::HttpResponse Complete(json extra = json::object(), http::HttpHeaders headers = {}) {
    json body = {{"prompt", "q"}};
    body.update(extra);
    return Post("/v1/completions", body, std::move(headers));
  }
  // The data of each event of a stream.
  std::vector<std::string> Stream(std::string path, json body) {
    body["stream"] = true;
    std::vector<std::string> events;
    auto response = client_.PostStream(path, body.dump(), Deadline(), {}, [&](auto line) {
      if (line.starts_with("data: ")) events.emplace_back(line.substr(6));
      return true;
    });
    EXPECT_TRUE(response.ok()) << response.status();
    if (response.ok()) {
      EXPECT_THAT(std::string(*http::FindHeader(response->headers, "content-type")),
                  StartsWith("text/event-stream"));
    }
    return events;
  }
  std::string Metrics() { return client_.Get("/metrics", Deadline())->body; }

  std::vector<std::unique_ptr<FakeWorker>> workers_;
  std::unique_ptr<RouterServer> router_;
  http::HttpClient client_;
};

json ChatBody(std::string content) {
  return {{"messages", {{{"role", "user"}, {"content", content}}}}};
}

TEST(RouterServerTest, WithoutAModelTheErrorNamesTheFlag) {
  auto router = RouterServer::Start({});
  ASSERT_FALSE(router.ok());
  EXPECT_EQ(router.status().message(), "--model is required");
}

TEST(RouterServerTest, AnErrorOfTheModelNamesTheFileOnce) {
  const std::string path = ::testing::TempDir() + "router_broken_model.gguf";
  for (const std::string& bytes : {std::string("no GGUF"), model::testing::GgufWriter().Finish()}) {
    std::ofstream(path, std::ios::binary) << bytes;
    auto router = RouterServer::Start({.model = path});
    ASSERT_FALSE(router.ok());
    const std::string message(router.status().message());
    EXPECT_THAT(message, StartsWith(path + ": "));
    EXPECT_EQ(message.find(path, 1), std::string::npos) << message;
  }
  std::filesystem::remove(path);
}

TEST_F(RouterHttpTest, AnswersAChat) {
  FakeWorker& worker = Add("w0", Says("hello"));
  auto response = Post("/v1/chat/completions", ChatBody("hi"));
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(http::FindHeader(response.headers, "x-pagoda-worker"), "w0");
  json body = json::parse(response.body);
  EXPECT_EQ(body["choices"][0]["message"]["content"], "hello");
  EXPECT_EQ(body["model"], "tiny");
  EXPECT_EQ(body["usage"]["completion_tokens"], 5);
  EXPECT_EQ(body["usage"]["pagoda"]["workers"], json({"w0"}));
  EXPECT_EQ(body["system_fingerprint"].get<std::string>().size(), 12u);

  v1::WorkerGenerateRequest sent = worker.requests().at(0);
  EXPECT_TRUE(sent.sampling().has_seed());
  EXPECT_EQ(sent.stop().max_tokens() + sent.prompt_ids_size(), testing::kTestContext);
  EXPECT_EQ(sent.block_keys().size(), 32u * (sent.prompt_ids_size() / 32));
  EXPECT_EQ(sent.space_required().size(), 32u);
}

TEST_F(RouterHttpTest, StreamsAChatInTheOrderThatClientsExpect) {
  Add("w0", Says("hey"));
  json body = ChatBody("hi");
  body["stream_options"] = {{"include_usage", true}};
  auto events = Stream("/v1/chat/completions", body);
  ASSERT_EQ(events.back(), "[DONE]");
  events.pop_back();
  std::string text;
  for (size_t i = 0; i < events.size(); ++i) {
    json event = json::parse(events[i]);
    if (i + 1 == events.size()) {
      EXPECT_EQ(event["choices"], json::array());
      EXPECT_EQ(event["usage"]["completion_tokens"], 3);
      continue;
    }
    EXPECT_TRUE(event["usage"].is_null());
    const json& choice = event["choices"][0];
    EXPECT_EQ(choice["delta"].contains("role"), i == 0);
    EXPECT_EQ(choice["finish_reason"].is_null(), i + 2 != events.size());
    text += choice["delta"].value("content", "");
  }
  EXPECT_EQ(text, "hey");
}

TEST_F(RouterHttpTest, HalfACharacterIsHeldBackUntilItIsWhole) {
  Add("w0", Says("a\xc3\xa9\xe2\x82"));  // "aé" and a character that never ends
  std::string text;
  for (const std::string& data : Stream("/v1/completions", {{"prompt", "q"}})) {
    if (data == "[DONE]") continue;
    text += json::parse(data)["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(text, "a\u00e9\ufffd");
}

TEST_F(RouterHttpTest, TheStopTokenIsCountedAndGivesNoText) {
  Add("w0", [](const v1::WorkerGenerateRequest& request) {
    FakeAnswer answer = AnswerText(request, "ab");
    answer.messages.push_back({2});  // <|im_end|>, the model's end of turn
    answer.usage.set_completion_tokens(3);
    return answer;
  });
  json body = json::parse(Complete({{"return_token_ids", true}}).body);
  EXPECT_EQ(body["choices"][0]["text"], "ab");
  EXPECT_EQ(body["choices"][0]["token_ids"].size(), 3u);
  EXPECT_EQ(body["choices"][0]["prompt_token_ids"], json(testing::ByteIds("q")));
  json own_stop = json::parse(Complete({{"stop_token_ids", testing::ByteIds("b")}}).body);
  EXPECT_EQ(own_stop["choices"][0]["text"], "a");
}

TEST_F(RouterHttpTest, SeveralPromptsBecomeSeveralChoices) {
  Add("w0", [](const v1::WorkerGenerateRequest& request) {
    return AnswerText(request, std::string(1, static_cast<char>(request.prompt_ids(0) - 3)) + "!");
  });
  json whole = json::parse(Complete({{"prompt", {"x", "y", "z"}}}).body);
  ASSERT_EQ(whole["choices"].size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(whole["choices"][i]["index"], i);
    EXPECT_EQ(whole["choices"][i]["text"], std::string(1, "xyz"[i]) + "!");
  }
  EXPECT_EQ(whole["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(whole["usage"]["completion_tokens"], 6);

  std::map<int, std::string> texts;
  std::map<int, int> finishes;
  auto events = Stream("/v1/completions", {{"prompt", {{120 + 3}, {121 + 3}}}});
  EXPECT_EQ(events.back(), "[DONE]");
  events.pop_back();
  for (const std::string& data : events) {
    json choice = json::parse(data)["choices"][0];
    texts[choice["index"]] += choice["text"].get<std::string>();
    finishes[choice["index"]] += choice["finish_reason"].is_null() ? 0 : 1;
  }
  EXPECT_THAT(texts, ElementsAre(std::pair(0, "x!"), std::pair(1, "y!")));
  EXPECT_THAT(finishes, ElementsAre(std::pair(0, 1), std::pair(1, 1)));
}

TEST_F(RouterHttpTest, WithoutAWorkerIs503WithRetryAfter) {
  auto response = Complete();
  EXPECT_EQ(response.status, 503);
  EXPECT_TRUE(http::FindHeader(response.headers, "retry-after").has_value());
  EXPECT_EQ(Complete({{"stream", true}}).status, 503);  // no 200 before the first token
}

TEST_F(RouterHttpTest, AFailureBeforeTheFirstTokenIsTriedElsewhereAndCounted) {
  Add("bad", Fails(absl::UnavailableError("ipv4:10.0.0.1:7100 refused")));
  FakeWorker& good = Add("good", Says("fine"));
  bool retried = false;
  for (int i = 0; i < 40 && !retried; ++i) {  // ties are drawn: "bad" is tried first sometimes
    json body = json::parse(Complete().body);
    EXPECT_EQ(body["choices"][0]["text"], "fine");
    retried = body["usage"]["pagoda"]["retries"] == 1;
    EXPECT_EQ(body["usage"]["pagoda"]["workers"], json({"good"}));
  }
  EXPECT_TRUE(retried);
  EXPECT_GE(good.requests().size(), 1u);
  EXPECT_THAT(Metrics(), HasSubstr("pagoda:router_retries_total 1"));
  EXPECT_THAT(Metrics(),
              HasSubstr("pagoda:router_placements_total{reason=\"only\",worker=\"good\"}"));
}

TEST_F(RouterHttpTest, WhenEveryWorkerFailsTheErrorNamesNoAddress) {
  for (const char* name : {"w0", "w1", "w2", "w3"}) {
    Add(name, Fails(absl::UnavailableError("cannot reach ipv4:10.0.0.1:7100")));
  }
  auto response = Complete();
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, Not(HasSubstr("10.0.0.1")));
  size_t attempts = 0;
  for (auto& worker : workers_) attempts += worker->requests().size();
  EXPECT_EQ(attempts, 3u);  // kMaxAttempts
}

TEST_F(RouterHttpTest, AWorkerThatRefusesConnectionsIsSkipped) {
  FakeWorker& dead = Add("dead", Says("never"));
  dead.Kill();
  EXPECT_EQ(Complete().status, 503);
  EXPECT_THAT(Complete().body, Not(HasSubstr(dead.address())));
  Add("good", Says("fine"));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(json::parse(Complete().body)["choices"][0]["text"], "fine");
  }
}

TEST_F(RouterHttpTest, TheClientsFaultIsNotTriedElsewhere) {
  FakeWorker& first = Add("w0", Fails(absl::InvalidArgumentError("prompt_ids[0]: 600")));
  FakeWorker& second = Add("w1", Fails(absl::InvalidArgumentError("prompt_ids[0]: 600")));
  EXPECT_EQ(Complete().status, 400);
  EXPECT_EQ(first.requests().size() + second.requests().size(), 1u);
}

TEST_F(RouterHttpTest, FullQueuesEverywhereAre429) {
  Add("w0", Fails(absl::ResourceExhaustedError("the queue is full")));
  Add("w1", Fails(absl::ResourceExhaustedError("the queue is full")));
  auto response = Complete();
  EXPECT_EQ(response.status, 429);
  EXPECT_TRUE(http::FindHeader(response.headers, "retry-after").has_value());
}

TEST_F(RouterHttpTest, WhatFitsIntoNoWorkersPoolIsTheClientsFaultAndNotToBeTriedAgain) {
  FakeWorker& small = Add("w0", Fails(absl::OutOfRangeError("need 21 KV blocks, the pool has 20")));
  FakeWorker& other = Add("w1", Fails(absl::OutOfRangeError("need 21 KV blocks, the pool has 20")));
  auto response = Complete();
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("21 KV blocks"));
  EXPECT_FALSE(http::FindHeader(response.headers, "retry-after").has_value());
  EXPECT_EQ(small.requests().size(), 1u);
  EXPECT_EQ(other.requests().size(), 1u) << "its pool might have been larger";
}

TEST_F(RouterHttpTest, AnErrorInMidStreamIsAnEventAndNoDone) {
  FakeWorker& worker = Add("w0", [](const v1::WorkerGenerateRequest&) {
    return FakeAnswer{.messages = {testing::ByteIds("ab")},
                      .status = absl::InternalError("ipv4:10.0.0.1:7100")};
  });
  auto events = Stream("/v1/chat/completions", ChatBody("hi"));
  json error = json::parse(events.back())["error"];
  EXPECT_EQ(error["type"], "server_error");
  EXPECT_EQ(json::parse(events[1])["choices"][0]["delta"]["content"], "ab");
  EXPECT_THAT(error.dump(), Not(HasSubstr("10.0.0.1")));
  EXPECT_EQ(worker.requests().size(), 1u);
}

TEST_F(RouterHttpTest, AnErrorAfterTokensIsA5xxWhenNotStreamed) {
  Add("w0", [](const v1::WorkerGenerateRequest&) {
    return FakeAnswer{.messages = {{100}}, .status = absl::UnavailableError("gone")};
  });
  EXPECT_EQ(Complete().status, 503);
}

TEST_F(RouterHttpTest, AClientThatLeavesCancelsTheWorker) {
  FakeWorker& worker = Add("w0", [](const v1::WorkerGenerateRequest&) {
    return FakeAnswer{.messages = {{100}, {101}}, .hang = true};
  });
  std::string body = R"({"prompt":"q","stream":true})";
  std::string request =
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  {
    http::LoopbackSocket client(router_->http_address());
    client.Send(request);
    EXPECT_THAT(client.ReadUntil("data: "), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_TRUE(worker.WaitForCancel());
}

TEST_F(RouterHttpTest, AClientThatLeavesBeforeTheFirstTokenCancelsTheWorker) {
  std::atomic<int> asked = 0;
  FakeWorker& worker = Add("w0", [&](const v1::WorkerGenerateRequest&) {
    ++asked;
    return FakeAnswer{.hang = true};
  });
  std::string body = R"({"prompt":"q"})";
  {
    http::LoopbackSocket client(router_->http_address());
    client.Send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    while (asked == 0) std::this_thread::yield();
  }
  EXPECT_TRUE(worker.WaitForCancel());
}

TEST_F(RouterHttpTest, StoppingTheRouterEndsRunningStreamsAndTheirClientsHearWhy) {
  FakeWorker& worker = Add("w0", [](const v1::WorkerGenerateRequest&) {
    return FakeAnswer{.messages = {{100}}, .hang = true};
  });
  http::LoopbackSocket client(router_->http_address());
  std::string body = R"({"prompt":"q","stream":true})";
  client.Send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  client.ReadUntil("data: ");
  router_->Stop();
  EXPECT_TRUE(worker.WaitForCancel());
  std::string rest = client.ReadToEnd();
  EXPECT_THAT(rest, HasSubstr("the router is stopping"));
  EXPECT_THAT(rest, Not(HasSubstr("cancelled")));
  EXPECT_THAT(rest, Not(HasSubstr("[DONE]")));
}

TEST_F(RouterHttpTest, StoppingTheRouterAnswersWhatHasNotBegunWith503AndRetryAfter) {
  std::atomic<bool> asked = false;
  Add("w0", [&](const v1::WorkerGenerateRequest&) {
    asked = true;
    return FakeAnswer{.hang = true};
  });
  std::thread stop([&] {
    while (!asked) std::this_thread::yield();
    router_->Stop();
  });
  auto response = Complete(json::object());
  stop.join();
  EXPECT_EQ(response.status, 503);
  EXPECT_TRUE(http::FindHeader(response.headers, "retry-after").has_value());
}

TEST_F(RouterHttpTest, StoppingTheRouterStartsNothingThatWaitsForATextThread) {
  FakeWorker& worker = Add("w0", [](const v1::WorkerGenerateRequest&) {
    return FakeAnswer{.messages = {{100}}, .hang = true};
  });
  auto stub =
      v1::Inference::NewStub(rpc::MakeChannel(router_->grpc_address(), rpc::ChannelKind::kControl));
  v1::GenerateRequest request;
  request.set_text("q");
  grpc::ClientContext running_context, waiting_context;
  auto running = stub->Generate(&running_context, request);
  v1::GenerateResponse message;
  ASSERT_TRUE(running->Read(&message));
  // Many bodies that take long to parse and are then found wrong, complete all at once.
  std::string body = "[0";
  for (int i = 0; i < 400'000; ++i) body += ",0";
  std::vector<std::unique_ptr<http::LoopbackSocket>> slow;
  for (int i = 0; i < 10; ++i) {
    slow.push_back(std::make_unique<http::LoopbackSocket>(router_->http_address()));
    slow.back()->Send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                      std::to_string(body.size() + 1) + "\r\n\r\n" + body);
  }
  for (auto& client : slow) client->Send("]");
  slow.front()->ReadUntil("HTTP/1.1 400");
  auto waiting = stub->Generate(&waiting_context, request);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const size_t begun = worker.requests().size();  // 2 if it overtook the bodies, which is rare
  router_->Stop();
  EXPECT_EQ(worker.requests().size(), begun);
  EXPECT_FALSE(running->Read(&message));
  EXPECT_EQ(running->Finish().error_message(), "the router is stopping");
  while (waiting->Read(&message)) {
  }
  EXPECT_EQ(waiting->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(RouterHttpTest, APinnedRequestGoesToItsWorkerOnly) {
  Add("w0", Says("zero"));
  Add("w1", Says("one"));
  for (int i = 0; i < 4; ++i) {
    std::string worker = i % 2 == 0 ? "w0" : "w1";
    auto response = Complete(json::object(), {{"x-pagoda-worker", worker}});
    EXPECT_EQ(http::FindHeader(response.headers, "x-pagoda-worker"), worker);
  }
  auto unknown = Complete(json::object(), {{"x-pagoda-worker", "w9"}});
  EXPECT_EQ(unknown.status, 400);
  EXPECT_THAT(unknown.body, HasSubstr("w9"));
  EXPECT_THAT(Metrics(),
              HasSubstr("pagoda:router_placements_total{reason=\"pinned\",worker=\"w0\"} 2"));
}

TEST_F(RouterHttpTest, TheSamePrefixStaysWithItsWorker) {
  Add("w0", Says("x"));
  Add("w1", Says("x"));
  json ids = json::array();
  for (int i = 0; i < 200; ++i) ids.push_back(5 + i);
  std::string first(*http::FindHeader(Complete({{"prompt", ids}}).headers, "x-pagoda-worker"));
  for (int i = 0; i < 8; ++i) {
    json longer = ids;
    longer.push_back(i);
    EXPECT_EQ(http::FindHeader(Complete({{"prompt", longer}}).headers, "x-pagoda-worker"), first);
  }
  EXPECT_THAT(Metrics(), HasSubstr("reason=\"prefix\""));
}

TEST_F(RouterHttpTest, CacheScopeNoneSendsNoKeys) {
  FakeWorker& worker = Add("w0", Says("x"));
  json ids(std::vector<int>(100, 5));
  Complete({{"prompt", ids}, {"cache_scope", "none"}});
  Complete({{"prompt", ids}});
  EXPECT_EQ(worker.requests()[0].block_keys(), "");
  EXPECT_EQ(worker.requests()[0].cache_scope().kind(), v1::CacheScope::NONE);
  EXPECT_EQ(worker.requests()[1].block_keys().size(), 3 * 32u);
}

TEST_F(RouterHttpTest, EachPromptGetsItsChoicesAndIsCountedOnce) {
  FakeWorker& worker = Add("w0", [](const auto& request) {
    return AnswerText(request, std::to_string(request.prompt_ids_size()) + "/" +
                                   std::to_string(request.choice_index()));
  });
  auto response = client_.Post("/v1/completions", R"({"prompt":[[5],[6,7]],"n":3})", Deadline());
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->status, 200) << response->body;
  json body = json::parse(response->body);
  ASSERT_EQ(body["choices"].size(), 6u);
  const char* texts[] = {"1/0", "1/1", "1/2", "2/0", "2/1", "2/2"};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(body["choices"][i]["index"], i);
    EXPECT_EQ(body["choices"][i]["text"], texts[i]);
  }
  EXPECT_EQ(body["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(body["usage"]["completion_tokens"], 18);
  std::set<uint64_t> seeds;
  for (const auto& request : worker.requests()) {
    if (request.prompt_ids_size() == 1) seeds.insert(request.sampling().seed());
  }
  EXPECT_EQ(seeds.size(), 1u) << "the choices differ by their index, not by their seed";
}

TEST_F(RouterHttpTest, BadRequestsAre4xxWithAllKeysAndTheRouterGoesOn) {
  Add("w0", Says("x"));
  struct Case {
    std::string path, body;
    int status;
    std::string param;
  };
  std::string chat = "/v1/chat/completions", text = "/v1/completions";
  for (const Case& c :
       {Case{text, "{", 400, ""},
        {text, "", 400, ""},
        {text, "{\"prompt\":\"\xff\"}", 400, ""},
        {text, R"({"prompt":""})", 400, "prompt"},
        {text, R"({"prompt":"q","temperature":3})", 400, "temperature"},
        {text, R"({"prompt":"q","max_tokens":512})", 400, "max_tokens"},
        {text, R"({"prompt":[600]})", 400, "prompt"},
        {text, R"({"prompt":"q","model":"gpt-4"})", 404, "model"},
        {text, R"({"prompt":"q","n":17})", 400, "n"},
        {text, R"({"prompt":["a",""]})", 400, "prompt"},
        {chat, R"({"messages":[]})", 400, "messages"},
        {chat, R"({"messages":[{"role":"user","content":1}]})", 400, "messages[0].content"},
        {"/v1/embeddings", "{}", 404, ""}}) {
    auto response = client_.Post(c.path, c.body, Deadline());
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->status, c.status) << c.body;
    json error = json::parse(response->body)["error"];
    EXPECT_EQ(error.size(), 4u);
    EXPECT_EQ(error["param"], c.param.empty() ? json() : json(c.param)) << c.body;
  }
  EXPECT_EQ(client_.Get("/v1/completions", Deadline())->status, 405);
  EXPECT_EQ(Complete().status, 200);
  EXPECT_THAT(Metrics(),
              HasSubstr("pagoda:router_requests_total{api=\"completions\",result=\"ok\"} 1"));
  EXPECT_THAT(Metrics(),
              HasSubstr("pagoda:router_requests_total{api=\"chat\",result=\"client_error\"} 2"));
}

TEST_F(RouterHttpTest, ModelsWorkersAndHealthAreListed) {
  Add("w0", Says("x"));
  json models = json::parse(client_.Get("/v1/models", Deadline())->body);
  EXPECT_EQ(models["object"], "list");
  EXPECT_EQ(models["data"][0]["id"], "tiny");
  EXPECT_EQ(models["data"][0]["object"], "model");
  EXPECT_TRUE(models["data"][0]["created"].is_number_integer());
  json workers = json::parse(client_.Get("/pagoda/v1/workers", Deadline())->body)["workers"];
  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(workers[0]["name"], "w0");
  EXPECT_EQ(workers[0]["state"], "ready");
  EXPECT_EQ(workers[0]["grpc"], workers_[0]->address());
  EXPECT_EQ(client_.Get("/healthz", Deadline())->status, 200);
  EXPECT_EQ(client_.Get("/readyz", Deadline())->status, 200);
  EXPECT_THAT(Metrics(), HasSubstr("pagoda:build_info"));
}

TEST_F(RouterHttpTest, AWorkersShorterContextIsTheLimit) {
  workers_.push_back(std::make_unique<FakeWorker>("w0", Says("x")));
  workers_.back()->set_max_model_len(64);
  workers_.back()->Join(router_->grpc_address());
  EXPECT_EQ(Complete({{"max_tokens", 63}}).status, 200);
  auto response = Complete({{"max_tokens", 64}});
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("context of 64"));
}

TEST_F(RouterHttpTest, AWorkerThatLeftGetsNothing) {
  FakeWorker& gone = Add("w0", Says("gone"));
  gone.Leave();
  while (Complete().status == 200) {  // its stream's end arrives in its own time
  }
  Add("w1", Says("here"));
  EXPECT_EQ(json::parse(Complete().body)["choices"][0]["text"], "here");
}

class NoOverrideTest : public RouterHttpTest {
 protected:
  NoOverrideTest() : RouterHttpTest({.served_names = {"tiny"}}) {}
};

TEST_F(NoOverrideTest, APinIsRefusedUnlessAllowed) {
  Add("w0", Says("x"));
  EXPECT_EQ(Complete(json::object(), {{"x-pagoda-worker", "w0"}}).status, 400);
  EXPECT_EQ(Complete().status, 200);
}

}  // namespace
}  // namespace pagoda::router
