#include "common/http/session.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "boost/asio/post.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/asio/write.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/http/parser.hpp"
#include "boost/beast/http/string_body.hpp"
#include "common/http/exchange.h"

namespace pagoda::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kReadBytes = 16 << 10;  // one read: most requests whole
constexpr TimePoint kNever = TimePoint::max();

class TcpSession final : public Session, public std::enable_shared_from_this<TcpSession> {
 public:
  TcpSession(tcp::socket socket, std::shared_ptr<SessionContext> context)
      : context_(std::move(context)),
        limits_(context_->limits),
        socket_(std::move(socket)),
        timer_(socket_.get_executor()) {}

  ~TcpSession() override {
    ReleaseBody();
    if (context_->on_end) context_->on_end(this);
  }

  void Start() override {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      self->read_deadline_ = Now() + self->limits_.idle_timeout;
      self->ContinueReading();
      self->ArmTimer();
    });
  }

  void Close(CloseReason reason) override {
    asio::post(socket_.get_executor(),
               [self = shared_from_this(), reason] { self->EndWhenWritten(reason); });
  }

 private:
  static TimePoint Now() { return std::chrono::steady_clock::now(); }

  // ---- receiving ----

  void ContinueReading() {
    if (reading_ || ended_ || peer_closed_) return;
    bool enough_ahead = exchange_ != nullptr && buffer_.size() >= limits_.header_bytes;
    if (enough_ahead) return;
    reading_ = true;
    // Not into buffer_: an answer that ends meanwhile parses, and so moves, what buffer_ holds.
    socket_.async_read_some(asio::buffer(received_),
                            [self = shared_from_this()](error_code error, size_t bytes) {
                              self->reading_ = false;
                              self->OnRead(error, bytes);
                            });
  }

  void OnRead(error_code error, size_t bytes) {
    if (ended_) return;
    if (error) return OnPeerClosed();
    if (lingering_) return ContinueReading();
    buffer_.commit(asio::buffer_copy(buffer_.prepare(bytes), asio::buffer(received_, bytes)));
    Parse();
    ContinueReading();
    ArmTimer();
  }

  // EOF counts as a disconnect even where only the sending half was closed; an answer that is
  // already complete is still delivered.
  void OnPeerClosed() {
    peer_closed_ = true;
    if (lingering_ || exchange_ == nullptr) return End(CloseReason::kClientGone);
    if (Pull() != Exchange::Progress::kFinished) return End(CloseReason::kClientGone);
    Flush();
  }

  void Parse() {
    while (exchange_ == nullptr && !ended_ && !lingering_ && buffer_.size() > 0) {
      if (!parser_) BeginRequest();
      error_code error;
      size_t used = parser_->put(buffer_.data(), error);
      buffer_.consume(used);
      bool need_more = error == beast::http::error::need_more;
      if (error && !need_more) return RefuseUnparsable(error);
      if (parser_->is_header_done() && !header_accepted_ && !AcceptHeader()) return;
      if (parser_->is_done()) return Dispatch();
      if (need_more || used == 0) return;
    }
  }

  void BeginRequest() {
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(static_cast<uint32_t>(limits_.header_bytes));
    parser_->body_limit(limits_.body_bytes);
    header_accepted_ = false;
    read_deadline_ = Now() + limits_.header_timeout;
  }

  // What can be refused before the body is read. False: refused.
  bool AcceptHeader() {
    header_accepted_ = true;
    read_deadline_ = Now() + limits_.body_timeout;
    const auto& head = parser_->get();
    if (head.version() == 11 && head.count(beast::http::field::host) == 0) {
      Refuse({.status = 400, .message = "HTTP/1.1 needs a Host header"});
      return false;
    }
    if (head.count(beast::http::field::transfer_encoding) > 0 && !parser_->chunked()) {
      Refuse({.status = 501, .message = "Transfer-Encoding other than chunked is not supported"});
      return false;
    }
    auto length = parser_->content_length();
    size_t reserve = parser_->chunked() ? limits_.body_bytes : (length ? *length : 0);
    if (!ReserveBody(reserve)) {
      Refuse({.status = 503, .message = "too many bytes of request bodies in flight; try again"});
      return false;
    }
    if (!parser_->is_done() && beast::iequals(head[beast::http::field::expect], "100-continue")) {
      out_ += "HTTP/1.1 100 Continue\r\n\r\n";
      Flush();
    }
    return true;
  }

  void RefuseUnparsable(error_code error) {
    namespace http = beast::http;
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      return Refuse({.status = 431,
                     .message = "request headers exceed the limit of " +
                                std::to_string(limits_.header_bytes) + " bytes"});
    }
    if (error == http::error::body_limit) {
      return Refuse({.status = 413,
                     .message = "request body exceeds the limit of " +
                                std::to_string(limits_.body_bytes) + " bytes"});
    }
    Refuse({.status = 400, .message = "malformed HTTP request: " + error.message()});
  }

  // Answers with an error and then closes, because what follows in the stream cannot be trusted.
  void Refuse(const HttpError& error) {
    HttpResponse response = ErrorResponse(error);
    if (error.status == 503) response.headers.emplace_back("Retry-After", "1");
    MakeExchange({.keep_alive = false});
    exchange_->Send(std::move(response));
  }

  // ---- handling ----

  void Dispatch() {
    auto message = parser_->release();
    HttpRequest request;
    request.method = std::string(message.method_string());
    std::string_view target(message.target().data(), message.target().size());
    size_t mark = std::min(target.find('?'), target.size());
    request.path = std::string(target.substr(0, mark));
    if (mark < target.size()) request.query = std::string(target.substr(mark + 1));
    for (const auto& field : message) {
      request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    request.body = std::move(message.body());
    MakeExchange({.head = request.method == "HEAD",
                  .http_1_0 = message.version() < 11,
                  .keep_alive = message.keep_alive()});
    route_ = std::string(context_->routes.Label(request.path));
    // The deleter notices a handler that drops its responder without answering.
    std::shared_ptr<Responder> responder(
        exchange_.get(), [exchange = exchange_](Responder*) { exchange->Abandoned(); });
    context_->routes.Dispatch(std::move(request), std::move(responder));
  }

  void MakeExchange(Exchange::Options options) {
    read_deadline_ = kNever;
    options.buffer_limit = limits_.stream_buffer_bytes;
    route_ = "other";
    exchange_ = std::make_shared<Exchange>(options, [self = shared_from_this()] {
      asio::post(self->socket_.get_executor(), [self] {
        self->Flush();
        self->ArmTimer();
      });
    });
  }

  // ---- answering ----

  // At once, unless the answer is complete: the client is to have it, if it reads.
  void EndWhenWritten(CloseReason reason) {
    if (ended_ || exchange_ == nullptr) return End(reason);
    if (Pull() != Exchange::Progress::kFinished) return End(reason);
    close_at_ = Now() + limits_.stop_timeout;
    write_deadline_ = std::min(write_deadline_, close_at_);
    Flush();
    ArmTimer();
  }

  Exchange::Progress Pull() {
    if (exchange_ == nullptr) return Exchange::Progress::kOpen;
    return exchange_->Take(out_);
  }

  void Flush() {
    if (ended_ || lingering_) return;
    Exchange::Progress progress = Pull();
    if (progress == Exchange::Progress::kAborted) return End(CloseReason::kSlowReader);
    if (writing_ != Writing::kNothing) return;
    if (out_.empty()) {
      if (progress == Exchange::Progress::kFinished) EndExchange();
      return;
    }
    writing_ = exchange_ == nullptr ? Writing::kInterim : Writing::kAnswer;
    sending_.swap(out_);
    sent_ = 0;
    write_deadline_ = std::min(Now() + limits_.stall_timeout, close_at_);
    WriteSome();
  }

  void WriteSome() {
    socket_.async_write_some(asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                             [self = shared_from_this()](error_code error, size_t bytes) {
                               self->OnWrote(error, bytes);
                             });
  }

  void OnWrote(error_code error, size_t bytes) {
    if (ended_) return;
    if (error) return End(CloseReason::kClientGone);
    if (writing_ == Writing::kAnswer) exchange_->Wrote(bytes);
    sent_ += bytes;
    if (sent_ < sending_.size()) {
      write_deadline_ = std::min(Now() + limits_.stall_timeout, close_at_);
      return WriteSome();
    }
    sending_.clear();
    writing_ = Writing::kNothing;
    write_deadline_ = kNever;
    Flush();
    ArmTimer();
  }

  void EndExchange() {
    bool keep_alive = exchange_->keep_alive() && !peer_closed_;
    CountRequest();
    exchange_->Closed(CloseReason::kClientGone);
    exchange_.reset();
    parser_.reset();
    ReleaseBody();
    if (close_at_ != kNever) return End(CloseReason::kServerStopping);
    if (!keep_alive) return Linger();
    read_deadline_ = Now() + limits_.idle_timeout;
    Parse();
    ContinueReading();
  }

  void Linger() {
    if (peer_closed_) return End(CloseReason::kClientGone);
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    lingering_ = true;
    buffer_.consume(buffer_.size());
    read_deadline_ = Now() + limits_.linger_timeout;
    ContinueReading();
  }

  void End(CloseReason reason) {
    if (ended_) return;
    ended_ = true;
    error_code ignored;
    if (!lingering_) socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
    timer_.cancel();
    if (exchange_ != nullptr) {
      CountRequest();
      exchange_->Closed(reason);
      exchange_.reset();
    }
    ReleaseBody();
  }

  void CountRequest() {
    if (context_->metrics == nullptr) return;
    int status = exchange_->status();
    context_->metrics
        ->Counter("http_requests_total", "HTTP requests by route and status (0: none was sent)",
                  {{"route", route_}, {"code", std::to_string(status)}})
        .Increment();
  }

  // ---- limits ----

  bool ReserveBody(size_t bytes) {
    size_t before = context_->body_bytes.fetch_add(bytes);
    body_reserved_ = bytes;
    if (before + bytes <= limits_.total_body_bytes) return true;
    ReleaseBody();
    return false;
  }

  void ReleaseBody() {
    context_->body_bytes.fetch_sub(body_reserved_);
    body_reserved_ = 0;
  }

  // The timer is only moved to an earlier time: deadlines that move later are found when it fires.
  void ArmTimer() {
    TimePoint next = std::min(read_deadline_, write_deadline_);
    if (ended_ || next == kNever || timer_at_ <= next) return;
    timer_at_ = next;
    timer_.expires_at(next);
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (error || self->ended_) return;
      self->timer_at_ = kNever;
      self->OnTimer();
      self->ArmTimer();
    });
  }

  void OnTimer() {
    TimePoint now = Now();
    if (now >= write_deadline_) return End(CloseReason::kSlowReader);
    if (now < read_deadline_) return;
    if (lingering_ || !parser_) return End(CloseReason::kClientGone);
    Refuse({.status = 408,
            .message = header_accepted_ ? "the request body did not arrive in time"
                                        : "the request headers did not arrive in time"});
  }

  enum class Writing { kNothing, kInterim, kAnswer };

  const std::shared_ptr<SessionContext> context_;
  const HttpLimits& limits_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  TimePoint timer_at_ = kNever;
  TimePoint read_deadline_ = kNever;
  TimePoint write_deadline_ = kNever;
  TimePoint close_at_ = kNever;  // the server stops

  std::array<char, kReadBytes> received_;  // by the read that is running
  beast::flat_buffer buffer_;              // received before, not yet parsed
  std::optional<beast::http::request_parser<beast::http::string_body>> parser_;
  std::shared_ptr<Exchange> exchange_;  // the request being answered
  std::string route_;
  std::string out_;      // to be written next
  std::string sending_;  // given to the socket, `sent_` bytes of it taken
  size_t sent_ = 0;
  size_t body_reserved_ = 0;
  Writing writing_ = Writing::kNothing;
  bool reading_ = false;
  bool header_accepted_ = false;
  bool peer_closed_ = false;
  bool lingering_ = false;
  bool ended_ = false;
};

}  // namespace

std::shared_ptr<Session> MakeSession(tcp::socket socket, std::shared_ptr<SessionContext> context) {
  return std::make_shared<TcpSession>(std::move(socket), std::move(context));
}

}  // namespace pagoda::http
