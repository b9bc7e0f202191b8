// Streamed answers: clients that leave, stall, or read slowly.
#include <algorithm>
#include <thread>

#include "common/http/testing/loopback_socket.h"
#include "common/http/testing/test_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda::http {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kHeld = "GET /held HTTP/1.1\r\nHost: x\r\n\r\n";

TEST(HttpStreamTest, ChunksReachTheClientAsTheyAreWritten) {
  TestServer server;
  LoopbackSocket client(server.address());
  client.Send(kHeld);
  auto responder = server.TakeHeld();
  ASSERT_NE(responder, nullptr);
  responder->Start(200, {{"Content-Type", "text/event-stream"}});
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked"));
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(responder->Write("data: " + std::to_string(i)));
    EXPECT_EQ(client.ReadUntil(" " + std::to_string(i) + "\r\n"),
              "7\r\ndata: " + std::to_string(i) + "\r\n");
  }
  responder->Finish();
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "0\r\n\r\n");
  client.Send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");  // the connection is kept
  EXPECT_THAT(client.ReadUntil("hello\n"), StartsWith("HTTP/1.1 200"));
}

// More than the sockets' buffers hold, of which the client's is small: it cannot have been written
// at once.
const std::string kLong(7 << 20, 'x');
constexpr int kSmallBuffer = 4096;

TEST(HttpStreamTest, AnAnswerThatIsCompleteWhenTheServerStopsStillReachesItsClient) {
  HttpLimits limits;
  limits.stop_timeout = std::chrono::minutes(4);
  TestServer server(limits);
  LoopbackSocket client(server.address(), kSmallBuffer);
  client.Send(kHeld);
  auto responder = server.TakeHeld();
  ASSERT_NE(responder, nullptr);
  responder->Start(200, {});
  responder->Write(kLong);
  responder->Finish();
  std::thread stop([&] { server.server().Stop(); });
  while (LoopbackSocket(server.address()).connected()) std::this_thread::yield();
  client.ReadUntil("\r\n\r\n");
  std::string body = client.ReadToEnd();
  stop.join();
  EXPECT_GT(body.size(), kLong.size());
  EXPECT_TRUE(body.ends_with("0\r\n\r\n"));
}

TEST(HttpStreamTest, AClientThatDoesNotReadDoesNotHoldUpAStop) {
  HttpLimits limits;
  limits.stop_timeout = std::chrono::milliseconds(20);
  limits.stall_timeout = std::chrono::hours(1);
  TestServer server(limits);
  LoopbackSocket client(server.address(), kSmallBuffer);
  client.Send(kHeld);
  auto responder = server.TakeHeld();
  ASSERT_NE(responder, nullptr);
  responder->Start(200, {});
  responder->Write(kLong);
  responder->Finish();
  server.server().Stop();
  EXPECT_LT(client.ReadToEnd().size(), kLong.size());
}

TEST(HttpStreamTest, AClientThatLeavesBeforeTheAnswerIsNoticed) {
  TestServer server;
  auto client = std::make_unique<LoopbackSocket>(server.address());
  client->Send(kHeld);
  auto responder = server.TakeHeld();
  ASSERT_NE(responder, nullptr);
  client.reset();
  EXPECT_EQ(server.TakeClosed(), CloseReason::kClientGone);
}

TEST(HttpStreamTest, AClientThatLeavesInMidStreamIsNoticed) {
  TestServer server;
  auto client = std::make_unique<LoopbackSocket>(server.address());
  client->Send(kHeld);
  auto responder = server.TakeHeld();
  ASSERT_NE(responder, nullptr);
  responder->Start(200, {});
  responder->Write("one");
  client->ReadUntil("one");
  client.reset();
  EXPECT_EQ(server.TakeClosed(), CloseReason::kClientGone);
  EXPECT_FALSE(responder->Write("two"));
}

TEST(HttpStreamTest, AHalfClosedClientCountsAsGone) {
  TestServer server;
  LoopbackSocket client(server.address());
  client.Send(kHeld);
  auto responder = server.TakeHeld();
  ASSERT_NE(responder, nullptr);
  responder->Start(200, {});
  responder->Write("one");
  client.ReadUntil("one");
  client.ShutdownSending();
  EXPECT_EQ(server.TakeClosed(), CloseReason::kClientGone);
  client.ReadToEnd();
}

TEST(HttpStreamTest, AClientThatPipelinesAndThenLeavesIsNoticed) {
  TestServer server;
  auto client = std::make_unique<LoopbackSocket>(server.address());
  client->Send(std::string(kHeld) + std::string(kHeld));
  ASSERT_NE(server.TakeHeld(),
            nullptr);  // dropped at once: answered 500, so the second one follows
  client->ReadUntil("}}");
  auto second = server.TakeHeld();
  ASSERT_NE(second, nullptr);
  client.reset();
  EXPECT_EQ(server.TakeClosed(), CloseReason::kClientGone);
}

TEST(HttpStreamTest, APipelinedRequestWaitsForTheAnswerBeforeIt) {
  TestServer server;
  LoopbackSocket client(server.address());
  client.Send(std::string(kHeld) + "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
  auto responder = server.TakeHeld();
  ASSERT_NE(responder, nullptr);
  responder->Send(TextResponse(200, "first\n"));
  EXPECT_THAT(client.ReadUntil("first\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(client.ReadUntil("hello\n"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpStreamTest, APipelinedRequestMayArriveInPiecesAroundTheAnswerBeforeIt) {
  TestServer server;
  LoopbackSocket client(server.address());
  for (int split : {0, 1, 20, 50}) {  // bytes of the second request that come before the answer
    std::string second = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcd!";
    size_t early = second.size() - 5 - split;
    client.Send(std::string(kHeld) + second.substr(0, early));
    auto responder = server.TakeHeld();
    ASSERT_NE(responder, nullptr);
    responder->Send(TextResponse(200, "first\n"));
    client.ReadUntil("first\n");
    client.Send(second.substr(early));
    EXPECT_THAT(client.ReadUntil("!"), HasSubstr("\r\n\r\nabcd!")) << split;
  }
}

TEST(HttpStreamTest, AReaderThatStallsIsCutAfterTheStallLimit) {
  TestServer server({.stall_timeout = std::chrono::milliseconds(50)});
  LoopbackSocket client(server.address(), 4096);
  client.Send(kHeld);
  auto responder = server.TakeHeld();
  ASSERT_NE(responder, nullptr);
  responder->Start(200, {});
  // More than both sockets' buffers hold, less than the stream's limit.
  ASSERT_TRUE(responder->Write(std::string(7 << 20, 'x')));
  EXPECT_GT(responder->pending_bytes(), 0u);
  EXPECT_EQ(server.TakeClosed(), CloseReason::kSlowReader);
}

TEST(HttpStreamTest, AReaderThatLetsTooMuchWaitIsCutAtOnce) {
  TestServer server({.stream_buffer_bytes = 1 << 20});
  LoopbackSocket client(server.address(), 4096);
  client.Send(kHeld);
  auto responder = server.TakeHeld();
  ASSERT_NE(responder, nullptr);
  responder->Start(200, {});
  std::string chunk(64 << 10, 'x');
  while (responder->Write(chunk)) EXPECT_LE(responder->pending_bytes(), 2u << 20);
  EXPECT_EQ(server.TakeClosed(), CloseReason::kSlowReader);
}

TEST(HttpStreamTest, ASlowReaderThatMakesProgressGetsEverything) {
  TestServer server;
  LoopbackSocket client(server.address(), 4096);
  client.Send("GET /held HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  auto responder = server.TakeHeld();
  ASSERT_NE(responder, nullptr);
  responder->Send(TextResponse(200, std::string(20 << 20, 'x')));
  std::string all = client.ReadToEnd();
  EXPECT_EQ(all.size() - all.find("\r\n\r\n") - 4, 20u << 20);
}

TEST(HttpStreamTest, AnAbortedStreamEndsWithoutItsLastChunk) {
  TestServer server;
  LoopbackSocket client(server.address());
  client.Send(kHeld);
  auto responder = server.TakeHeld();
  ASSERT_NE(responder, nullptr);
  responder->Start(200, {});
  responder->Write("one");
  client.ReadUntil("one");
  responder->Abort();
  EXPECT_EQ(client.ReadToEnd().find("0\r\n\r\n"), std::string::npos);
}

TEST(HttpStreamTest, ManyThreadsMayFeedManyStreams) {
  TestServer server;
  constexpr int kStreams = 40;
  std::vector<std::unique_ptr<LoopbackSocket>> clients;
  std::vector<std::thread> producers;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<LoopbackSocket>(server.address()));
    clients.back()->Send(kHeld);
    auto responder = server.TakeHeld();
    ASSERT_NE(responder, nullptr);
    producers.emplace_back([responder] {
      responder->Start(200, {});
      for (int k = 0; k < 100; ++k) responder->Write("x");
      responder->Finish();
    });
  }
  for (auto& client : clients) {
    std::string all = client->ReadUntil("0\r\n\r\n");
    EXPECT_EQ(std::count(all.begin(), all.end(), 'x'), 100);
  }
  for (auto& producer : producers) producer.join();
}

}  // namespace
}  // namespace pagoda::http
