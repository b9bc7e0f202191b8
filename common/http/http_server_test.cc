// Requests and limits of the server, spoken byte by byte over loopback.
#include "common/http/http_server.h"

#include <random>
#include <thread>
#include <vector>

#include "common/http/service_endpoints.h"
#include "common/http/testing/loopback_socket.h"
#include "common/http/testing/test_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda::http {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kHello = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n";

std::string Post(std::string_view body, std::string_view more_headers = "") {
  return "POST /echo HTTP/1.1\r\nHost: x\r\n" + std::string(more_headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

TEST(HttpServerTest, AnswersSeveralRequestsOnOneConnection) {
  TestServer server;
  LoopbackSocket client(server.address());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send(kHello));
    EXPECT_THAT(client.ReadUntil("hello\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  }
}

TEST(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  TestServer server;
  LoopbackSocket client(server.address());
  std::string all;
  for (int i = 0; i < 200; ++i) all += Post("body-" + std::to_string(i) + "|");
  std::thread sender([&] { client.Send(all); });
  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(client.ReadUntil("|"), HasSubstr("\r\n\r\nbody-" + std::to_string(i) + "|"));
  }
  sender.join();
}

TEST(HttpServerTest, ARequestMayArriveOneByteAtATime) {
  TestServer server;
  LoopbackSocket client(server.address());
  for (char c : Post("abc!")) ASSERT_TRUE(client.Send(std::string(1, c)));
  EXPECT_THAT(client.ReadUntil("!"), HasSubstr("\r\n\r\nabc!"));
}

TEST(HttpServerTest, AChunkedBodyIsPutTogether) {
  TestServer server;
  LoopbackSocket client(server.address());
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  client.Send("2\r\nd!\r\n0\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("!"), HasSubstr("\r\n\r\nabcd!"));
}

TEST(HttpServerTest, ExpectContinueIsAnsweredBeforeTheBody) {
  TestServer server;
  LoopbackSocket client(server.address());
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("abc!");
  EXPECT_THAT(client.ReadUntil("!"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServerTest, ExpectContinueWithATooLargeBodyIsRefusedUnsent) {
  TestServer server({.body_bytes = 10});
  LoopbackSocket client(server.address());
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n");
  std::string answer = client.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(answer, HasSubstr("limit of 10 bytes"));
}

TEST(HttpServerTest, HeadersUpToTheLimitPassAndLongerOnesGet431) {
  TestServer server;
  std::string start = "GET /hello HTTP/1.1\r\nHost: x\r\nX-Long: ";
  size_t room = HttpLimits().header_bytes - start.size() - 4;
  LoopbackSocket fits(server.address());
  fits.Send(start + std::string(room, 'a') + "\r\n\r\n");
  EXPECT_THAT(fits.ReadUntil("hello\n"), StartsWith("HTTP/1.1 200"));
  LoopbackSocket long_one(server.address());
  long_one.Send(start + std::string(room + 1000, 'a') + "\r\n\r\n");
  std::string answer = long_one.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(answer, HasSubstr("32768 bytes"));
  EXPECT_THAT(answer, HasSubstr("\"code\":\"headers_too_large\""));
}

TEST(HttpServerTest, AnEndlessHeaderIsCutOffAtTheLimit) {
  TestServer server({.linger_timeout = std::chrono::milliseconds(50)});
  LoopbackSocket client(server.address());
  client.Send("GET /hello HTTP/1.1\r\n");
  std::thread sender([&] {
    while (client.Send("X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n")) {
    }
  });
  EXPECT_THAT(client.ReadUntil("\r\n"), StartsWith("HTTP/1.1 431"));
  client.ReadToEnd();
  sender.join();
}

TEST(HttpServerTest, BodiesUpToTheLimitPassAndLargerOnesGet413) {
  TestServer server({.body_bytes = 1 << 20, .linger_timeout = std::chrono::milliseconds(50)});
  std::string body((1 << 20) - 1, 'a');
  LoopbackSocket fits(server.address());
  std::thread sender([&] { fits.Send(Post(body + "!")); });
  EXPECT_THAT(fits.ReadUntil("!"), StartsWith("HTTP/1.1 200"));
  sender.join();

  LoopbackSocket large(server.address());
  std::thread large_sender([&] { large.Send(Post(body + "!!")); });
  EXPECT_THAT(large.ReadToEnd(), StartsWith("HTTP/1.1 413"));
  large_sender.join();

  LoopbackSocket chunked(server.address());
  std::thread chunked_sender([&] {
    chunked.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (chunked.Send("8000\r\n" + std::string(0x8000, 'a') + "\r\n")) {
    }
  });
  EXPECT_THAT(chunked.ReadUntil("\r\n"), StartsWith("HTTP/1.1 413"));
  chunked.ReadToEnd();
  chunked_sender.join();
}

TEST(HttpServerTest, BodiesInFlightAreBoundedTogether) {
  TestServer server({.body_bytes = 100, .total_body_bytes = 150});
  LoopbackSocket first(server.address());
  first.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n");
  first.ReadUntil("\r\n\r\n");
  LoopbackSocket second(server.address());
  second.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n");
  std::string answer = second.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(answer, HasSubstr("Retry-After: 1\r\n"));
  first.Send(std::string(99, 'a') + "!");
  EXPECT_THAT(first.ReadUntil("!"), StartsWith("HTTP/1.1 200"));
  first.Send(Post(std::string(99, 'b') + "!"));  // the first body's share was given back
  EXPECT_THAT(first.ReadUntil("!"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServerTest, GarbageGets400AndTheServerGoesOn) {
  TestServer server;
  for (std::string_view garbage :
       {std::string_view("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03zzzzzzzzzzz\r\n\r\n"),
        std::string_view("GET\r\n\r\n"), std::string_view("GET / HTTP/9.9\r\n\r\n"),
        std::string_view("GET / HTTP/1.1\r\nno colon here\r\n\r\n"),
        std::string_view("GET /hello HTTP/1.1\r\n\r\n"),  // no Host
        std::string_view("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n"),
        std::string_view("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                         "Content-Length: 6\r\n\r\nabcde"),
        std::string_view("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                         "Transfer-Encoding: chunked\r\n\r\nabcde"),
        std::string_view(
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")}) {
    LoopbackSocket client(server.address());
    client.Send(garbage);
    std::string answer = client.ReadToEnd();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400")) << garbage;
    EXPECT_THAT(answer, HasSubstr("\"type\":\"invalid_request_error\"")) << garbage;
  }
  LoopbackSocket client(server.address());
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n");
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 501"));
  LoopbackSocket good(server.address());
  good.Send(kHello);
  EXPECT_THAT(good.ReadUntil("hello\n"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServerTest, RandomlyDamagedRequestsNeverStopTheServer) {
  uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  TestServer server({.linger_timeout = std::chrono::milliseconds(20)});
  const std::string whole = Post("abcdef") +
                            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "3\r\nabc\r\n0\r\n\r\n" +
                            std::string(kHello);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = whole;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, 1 + random() % 8);
          break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 16));
      }
      if (damaged.empty()) damaged = "x";
    }
    LoopbackSocket client(server.address());
    client.Send(damaged);
    client.ShutdownSending();
    client.ReadToEnd();
  }
  LoopbackSocket good(server.address());
  good.Send(kHello);
  EXPECT_THAT(good.ReadUntil("hello\n"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServerTest, AnIncompleteRequestIsTimedOut) {
  TestServer server({.header_timeout = std::chrono::milliseconds(30)});
  LoopbackSocket client(server.address());
  client.Send("GET /hello HT");
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 408"));
}

TEST(HttpServerTest, AnIncompleteBodyIsTimedOut) {
  TestServer server({.body_timeout = std::chrono::milliseconds(30)});
  LoopbackSocket client(server.address());
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  std::string answer = client.ReadToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 408"));
  EXPECT_THAT(answer, HasSubstr("body"));
}

TEST(HttpServerTest, AnIdleConnectionIsClosedSilently) {
  TestServer server({.idle_timeout = std::chrono::milliseconds(30)});
  LoopbackSocket fresh(server.address());
  EXPECT_TRUE(fresh.AtEnd());
  LoopbackSocket used(server.address());
  used.Send(kHello);
  used.ReadUntil("hello\n");
  EXPECT_TRUE(used.AtEnd());
}

TEST(HttpServerTest, ConnectionCloseIsHonoured) {
  TestServer server;
  LoopbackSocket client(server.address());
  client.Send("GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.ReadToEnd(), HasSubstr("Connection: close\r\n"));
}

TEST(HttpServerTest, AHalfClosedClientStillGetsAnAnswerThatNeedsNoWaiting) {
  TestServer server;
  LoopbackSocket client(server.address());
  client.Send(kHello);
  client.ShutdownSending();
  EXPECT_THAT(client.ReadToEnd(), HasSubstr("\r\n\r\nhello\n"));
}

TEST(HttpServerTest, ConnectionsOverTheLimitAreRefusedAndLaterOnesServed) {
  TestServer server({.connections = 2});
  auto first = std::make_unique<LoopbackSocket>(server.address());
  LoopbackSocket second(server.address());
  for (LoopbackSocket* client : {first.get(), &second}) {
    client->Send(kHello);
    client->ReadUntil("hello\n");
  }
  LoopbackSocket third(server.address());
  EXPECT_THAT(third.ReadToEnd(), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(server.metrics(), HasSubstr("pagoda:http_connections 2"));
  EXPECT_THAT(server.metrics(), HasSubstr("pagoda:http_refused_connections_total 1"));
  first.reset();
  for (bool served = false; !served;) {  // the server notices the close in its own time
    LoopbackSocket later(server.address());
    later.Send(kHello);
    served = later.ReadUntil("hello\n").starts_with("HTTP/1.1 200");
  }
}

TEST(HttpServerTest, ServesManyConnectionsAtOnce) {
  TestServer server;
  std::vector<std::unique_ptr<LoopbackSocket>> clients;
  for (int i = 0; i < 300; ++i) {
    clients.push_back(std::make_unique<LoopbackSocket>(server.address()));
    ASSERT_TRUE(clients.back()->connected());
  }
  for (auto& client : clients) ASSERT_TRUE(client->Send(kHello));
  for (auto& client : clients) {
    EXPECT_THAT(client->ReadUntil("hello\n"), StartsWith("HTTP/1.1 200"));
  }
  // A request is counted when its last byte is taken, which the client may see first.
  std::string counted = "pagoda:http_requests_total{code=\"200\",route=\"/hello\"} 300";
  TimePoint deadline = TestServer::Deadline();
  while (server.metrics().find(counted) == std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << server.metrics();
    std::this_thread::yield();
  }
}

TEST(HttpServerTest, StopEndsHeldAnswersAndClosesThePort) {
  TestServer server;
  LoopbackSocket client(server.address());
  client.Send("GET /held HTTP/1.1\r\nHost: x\r\n\r\n");
  auto responder = server.TakeHeld();
  ASSERT_NE(responder, nullptr);
  server.server().Stop();
  EXPECT_EQ(server.TakeClosed(), CloseReason::kServerStopping);
  EXPECT_TRUE(client.AtEnd());
  responder->Send(TextResponse(200, "too late"));
  EXPECT_FALSE(LoopbackSocket(server.address()).connected());
}

TEST(HttpServerTest, AnAddressThatCannotBeUsedIsNamed) {
  TestServer server;
  HttpServer::Options options;
  options.address = server.address();
  auto taken = HttpServer::Start(options, {});
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(taken.status().message()), HasSubstr(server.address()));
  options.address = "nonsense";
  EXPECT_EQ(HttpServer::Start(options, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ServiceEndpointsTest, HealthDependsOnNothingAndReadinessSaysWhyNot) {
  Status ready = absl::UnavailableError("no tokenizer yet");
  HttpRoutes routes;
  AddServiceEndpoints(routes, {.ready = [&] { return ready; },
                               .metrics = [] { return std::string("pagoda:up 1\n"); }});
  auto server = HttpServer::Start({}, std::move(routes));
  ASSERT_TRUE(server.ok());
  auto get = [&](std::string path) {
    LoopbackSocket client((*server)->address());
    client.Send("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return client.ReadToEnd();
  };
  EXPECT_THAT(get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(get("/readyz"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(get("/readyz"), HasSubstr("no tokenizer yet"));
  ready = absl::OkStatus();
  EXPECT_THAT(get("/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(get("/metrics"), HasSubstr("pagoda:up 1\n"));
}

}  // namespace
}  // namespace pagoda::http
