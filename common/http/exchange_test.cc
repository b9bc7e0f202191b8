#include "common/http/exchange.h"

#include "gtest/gtest.h"

namespace pagoda::http {
namespace {

struct Fixture {
  explicit Fixture(Exchange::Options options = {.buffer_limit = 1000})
      : exchange(options, [this] { ++wakes; }) {}
  std::string Taken() {
    std::string out;
    progress = exchange.Take(out);
    return out;
  }
  int wakes = 0;
  Exchange::Progress progress = Exchange::Progress::kOpen;
  Exchange exchange;
};

TEST(ExchangeTest, AWholeResponseCarriesItsLength) {
  Fixture f;
  f.exchange.Send({.status = 200, .headers = {{"X-A", "b"}}, .body = "hello"});
  EXPECT_EQ(f.Taken(), "HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(f.progress, Exchange::Progress::kFinished);
}

TEST(ExchangeTest, AStreamIsSentInChunksAndEndsWithAnEmptyOne) {
  Fixture f;
  f.exchange.Start(200, {});
  EXPECT_TRUE(f.exchange.Write("0123456789abcdef"));
  EXPECT_TRUE(f.exchange.Write(""));
  EXPECT_EQ(f.Taken(),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n");
  EXPECT_EQ(f.progress, Exchange::Progress::kOpen);
  f.exchange.Finish();
  EXPECT_EQ(f.Taken(), "0\r\n\r\n");
  EXPECT_EQ(f.progress, Exchange::Progress::kFinished);
}

TEST(ExchangeTest, AnHttp10StreamEndsWithTheConnection) {
  Fixture f({.http_1_0 = true, .buffer_limit = 1000});
  f.exchange.Start(200, {});
  f.exchange.Write("abc");
  f.exchange.Finish();
  EXPECT_EQ(f.Taken(), "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nabc");
  EXPECT_FALSE(f.exchange.keep_alive());
}

TEST(ExchangeTest, HeadGetsTheLengthWithoutTheBody) {
  Fixture f({.head = true, .buffer_limit = 1000});
  f.exchange.Send({.status = 200, .headers = {}, .body = "hello"});
  EXPECT_EQ(f.Taken(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
}

TEST(ExchangeTest, ALineBreakInAHeaderCannotAddAHeader) {
  Fixture f;
  f.exchange.Send({.status = 200, .headers = {{"X-A", "b\r\nEvil: 1"}}, .body = ""});
  EXPECT_EQ(f.Taken().find("\r\nEvil"), std::string::npos);
}

TEST(ExchangeTest, WakesOnceUntilTheSessionLooks) {
  Fixture f;
  f.exchange.Start(200, {});
  f.exchange.Write("a");
  f.exchange.Write("b");
  EXPECT_EQ(f.wakes, 1);
  f.Taken();
  f.exchange.Write("c");
  EXPECT_EQ(f.wakes, 2);
}

TEST(ExchangeTest, PendingBytesFallAsTheConnectionTakesThem) {
  Fixture f;
  f.exchange.Start(200, {});
  f.exchange.Write(std::string(100, 'x'));
  std::string out = f.Taken();
  EXPECT_EQ(f.exchange.pending_bytes(), out.size());
  f.exchange.Wrote(out.size() - 7);
  EXPECT_EQ(f.exchange.pending_bytes(), 7u);
}

TEST(ExchangeTest, AChunkOverTheBufferLimitEndsTheStreamAsASlowReader) {
  Fixture f;
  CloseReason reason = CloseReason::kClientGone;
  f.exchange.Start(200, {});
  f.exchange.OnClose([&](CloseReason r) { reason = r; });
  EXPECT_TRUE(f.exchange.Write(std::string(600, 'x')));
  EXPECT_FALSE(f.exchange.Write(std::string(600, 'x')));
  f.Taken();
  EXPECT_EQ(f.progress, Exchange::Progress::kAborted);
  f.exchange.Closed(CloseReason::kClientGone);
  EXPECT_EQ(reason, CloseReason::kSlowReader);
}

TEST(ExchangeTest, OnCloseRunsOnceAndAtOnceWhenAlreadyClosed) {
  Fixture f;
  int closed = 0;
  f.exchange.OnClose([&](CloseReason) { ++closed; });
  f.exchange.Closed(CloseReason::kClientGone);
  f.exchange.Closed(CloseReason::kClientGone);
  EXPECT_EQ(closed, 1);
  f.exchange.OnClose([&](CloseReason) { ++closed; });
  EXPECT_EQ(closed, 2);
  EXPECT_FALSE(f.exchange.Write("x"));
}

TEST(ExchangeTest, OnCloseIsSilentAfterAFinishedAnswer) {
  Fixture f;
  int closed = 0;
  f.exchange.OnClose([&](CloseReason) { ++closed; });
  f.exchange.Send({.status = 200, .headers = {}, .body = ""});
  f.exchange.Closed(CloseReason::kClientGone);
  f.exchange.OnClose([&](CloseReason) { ++closed; });
  EXPECT_EQ(closed, 0);
}

TEST(ExchangeTest, AnAbandonedRequestIsAnswered500AndAnAbandonedStreamIsCut) {
  Fixture waiting;
  waiting.exchange.Abandoned();
  EXPECT_EQ(waiting.Taken().substr(0, 12), "HTTP/1.1 500");
  Fixture streaming;
  streaming.exchange.Start(200, {});
  streaming.exchange.Abandoned();
  streaming.Taken();
  EXPECT_EQ(streaming.progress, Exchange::Progress::kAborted);
}

}  // namespace
}  // namespace pagoda::http
