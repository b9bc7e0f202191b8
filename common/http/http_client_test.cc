#include "common/http/http_client.h"

#include "common/http/testing/test_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda::http {
namespace {

using ::testing::ElementsAre;

HttpClient ClientOf(const TestServer& server) {
  return *HttpClient::Create("http://" + server.address());
}

// A server with one streamed path whose producer is given by the test.
struct StreamServer {
  explicit StreamServer(std::function<void(Responder&)> produce) {
    HttpRoutes routes;
    routes.Add("POST", "/stream", [produce](HttpRequest, std::shared_ptr<Responder> responder) {
      produce(*responder);
    });
    server = std::move(*HttpServer::Start({}, std::move(routes)));
  }
  std::unique_ptr<HttpServer> server;
};

TEST(HttpClientTest, GetsAndPosts) {
  TestServer server;
  HttpClient client = ClientOf(server);
  auto got = client.Get("/hello", TestServer::Deadline());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->status, 200);
  EXPECT_EQ(got->body, "hello\n");
  std::string large(3 << 20, 'z');
  auto posted = client.Post("/echo", large, TestServer::Deadline());
  ASSERT_TRUE(posted.ok()) << posted.status();
  EXPECT_EQ(posted->body, large);
}

TEST(HttpClientTest, RefusesAnAddressThatItCannotUse) {
  for (const char* url : {"", "https://127.0.0.1:1", "http://127.0.0.1", "127.0.0.1:x"}) {
    EXPECT_EQ(HttpClient::Create(url).status().code(), absl::StatusCode::kInvalidArgument) << url;
  }
}

TEST(HttpClientTest, SaysThatHttpsIsNotSpoken) {
  Status status = HttpClient::Create("https://127.0.0.1:1").status();
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("no TLS"));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("https://127.0.0.1:1"));
}

TEST(HttpClientTest, AnErrorStatusIsAnAnswer) {
  TestServer server;
  auto got = ClientOf(server).Get("/nowhere", TestServer::Deadline());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->status, 404);
  EXPECT_EQ(FindHeader(got->headers, "content-TYPE"), "application/json");
}

TEST(HttpClientTest, GivesLinesAsTheyArrive) {
  StreamServer stream([](Responder& responder) {
    responder.Start(200, {});
    responder.Write("data: a\n\nda");
    responder.Write("ta: b\r\n");
    responder.Finish();
  });
  std::vector<std::string> lines;
  auto client = HttpClient::Create(stream.server->address());
  auto got =
      client->PostStream("/stream", "{}", TestServer::Deadline(), {}, [&](std::string_view line) {
        lines.emplace_back(line);
        return true;
      });
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT(lines, ElementsAre("data: a", "", "data: b"));
}

TEST(HttpClientTest, ACallerMayDropAStream) {
  StreamServer stream([](Responder& responder) {
    responder.Start(200, {});
    responder.Write("one\ntwo\n");
    responder.Finish();
  });
  auto client = HttpClient::Create(stream.server->address());
  auto got = client->PostStream("/stream", "{}", TestServer::Deadline(), {},
                                [](std::string_view) { return false; });
  EXPECT_EQ(got.status().code(), absl::StatusCode::kCancelled);
}

TEST(HttpClientTest, ACutStreamIsAnError) {
  StreamServer stream([](Responder& responder) {
    responder.Start(200, {});
    responder.Write("one\n");
    responder.Abort();
  });
  auto client = HttpClient::Create(stream.server->address());
  auto got = client->PostStream("/stream", "{}", TestServer::Deadline(), {},
                                [](std::string_view) { return true; });
  EXPECT_EQ(got.status().code(), absl::StatusCode::kUnavailable) << got.status();
}

TEST(HttpClientTest, NobodyListeningIsUnavailableAndNamesTheAddress) {
  std::string address;
  {
    TestServer server;
    address = server.address();
  }
  auto got = HttpClient::Create(address)->Get("/", TestServer::Deadline());
  EXPECT_EQ(got.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(got.status().message().find(address), absl::string_view::npos);
}

TEST(HttpClientTest, ASilentServerEndsAtTheDeadline) {
  TestServer server;
  auto got = ClientOf(server).Get("/held",
                                  std::chrono::steady_clock::now() + std::chrono::milliseconds(30));
  EXPECT_EQ(got.status().code(), absl::StatusCode::kDeadlineExceeded) << got.status();
}

}  // namespace
}  // namespace pagoda::http
