#include "common/http/http_client.h"

#include <utility>

#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/core/tcp_stream.hpp"
#include "boost/beast/http/message.hpp"
#include "boost/beast/http/parser.hpp"
#include "boost/beast/http/read.hpp"
#include "boost/beast/http/string_body.hpp"
#include "boost/beast/http/write.hpp"

namespace pagoda::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

constexpr uint64_t kMaxResponseBytes = 1ull << 30;  // a server of ours sends no more
constexpr size_t kMaxLineBytes = 16 << 20;          // one SSE event

// One call: every step is asynchronous on a private io_context so that the deadline covers it.
class ClientCall {
 public:
  ClientCall(const HostPort& server, TimePoint deadline)
      : server_(server), deadline_(deadline), stream_(io_) {
    parser_.body_limit(kMaxResponseBytes);
  }

  Status Connect() {
    error_code error;
    asio::ip::tcp::resolver resolver(io_);
    auto found = resolver.resolve(server_.host, std::to_string(server_.port), error);
    if (error) return Failure("cannot resolve", error);
    Wait(error, [&](auto done) {
      stream_.async_connect(found, [done](error_code code, const auto&) { done(code); });
    });
    if (error) return Failure("cannot connect to", error);
    stream_.socket().set_option(asio::ip::tcp::no_delay(true), error);
    return absl::OkStatus();
  }

  // The server may answer and close before it has read everything: an error here is only final if
  // no answer can be read afterwards.
  Status Exchange(const beast::http::request<beast::http::string_body>& request) {
    error_code write_error, read_error;
    Wait(write_error, [&](auto done) {
      beast::http::async_write(stream_, request, [done](error_code code, size_t) { done(code); });
    });
    if (write_error == beast::error::timeout) return Failure("cannot send to", write_error);
    Wait(read_error, [&](auto done) {
      beast::http::async_read_header(stream_, buffer_, parser_,
                                     [done](error_code code, size_t) { done(code); });
    });
    if (read_error) return Failure("no answer from", write_error ? write_error : read_error);
    return absl::OkStatus();
  }

  Status ReadBody(const std::function<bool(std::string_view)>& on_line) {
    while (!parser_.is_done()) {
      if (on_line && !GiveLines(on_line)) return absl::CancelledError("dropped by the caller");
      error_code error;
      Wait(error, [&](auto done) {
        beast::http::async_read_some(stream_, buffer_, parser_,
                                     [done](error_code code, size_t) { done(code); });
      });
      if (error) return Failure("incomplete answer from", error);
    }
    if (on_line && !GiveLines(on_line)) return absl::CancelledError("dropped by the caller");
    return absl::OkStatus();
  }

  HttpResponse TakeResponse() {
    auto message = parser_.release();
    HttpResponse response;
    response.status = message.result_int();
    for (const auto& field : message) {
      response.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    response.body = std::move(message.body());
    return response;
  }

  int status() const { return parser_.get().result_int(); }

 private:
  template <typename Operation>
  void Wait(error_code& result, Operation start) {
    stream_.expires_at(deadline_);
    start([&result](error_code code) { result = code; });
    io_.restart();
    io_.run();
  }

  bool GiveLines(const std::function<bool(std::string_view)>& on_line) {
    std::string& body = parser_.get().body();
    size_t begin = 0;
    for (size_t end; (end = body.find('\n', begin)) != std::string::npos; begin = end + 1) {
      std::string_view line(body.data() + begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!on_line(line)) return false;
    }
    body.erase(0, begin);
    return body.size() <= kMaxLineBytes;
  }

  Status Failure(std::string_view what, error_code error) const {
    std::string message = std::string(what) + " " + server_.ToString() + ": " + error.message();
    if (error == beast::error::timeout) return absl::DeadlineExceededError(message);
    if (error.category() == make_error_code(beast::http::error::bad_version).category() &&
        error != beast::http::error::end_of_stream &&
        error != beast::http::error::partial_message) {
      return absl::InvalidArgumentError(message);
    }
    return absl::UnavailableError(message);
  }

  const HostPort server_;
  const TimePoint deadline_;
  asio::io_context io_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  beast::http::response_parser<beast::http::string_body> parser_;
};

}  // namespace

StatusOr<HttpClient> HttpClient::Create(std::string_view url) {
  std::string_view address = url;
  if (address.starts_with("https://")) {
    return absl::InvalidArgumentError("no TLS: \"" + std::string(url) +
                                      "\" (write http://HOST:PORT)");
  }
  if (address.starts_with("http://")) address.remove_prefix(7);
  if (address.ends_with('/')) address.remove_suffix(1);
  PAGODA_ASSIGN_OR_RETURN(HostPort server, ParseHostPort(address));
  return HttpClient(std::move(server));
}

StatusOr<HttpResponse> HttpClient::Get(std::string_view path, TimePoint deadline) const {
  return Call("GET", path, "", deadline, {}, nullptr);
}

StatusOr<HttpResponse> HttpClient::Post(std::string_view path, std::string body, TimePoint deadline,
                                        HttpHeaders headers) const {
  return Call("POST", path, std::move(body), deadline, headers, nullptr);
}

StatusOr<HttpResponse> HttpClient::PostStream(std::string_view path, std::string body,
                                              TimePoint deadline, HttpHeaders headers,
                                              std::function<bool(std::string_view)> on_line) const {
  return Call("POST", path, std::move(body), deadline, headers, on_line);
}

StatusOr<HttpResponse> HttpClient::Call(
    std::string_view method, std::string_view path, std::string body, TimePoint deadline,
    const HttpHeaders& headers, const std::function<bool(std::string_view)>& on_line) const {
  beast::http::request<beast::http::string_body> request;
  request.method_string({method.data(), method.size()});
  request.target({path.data(), path.size()});
  request.set(beast::http::field::host, server_.ToString());
  request.set(beast::http::field::content_type, "application/json");
  for (const auto& [name, value] : headers) request.set(name, value);
  request.keep_alive(false);
  request.body() = std::move(body);
  request.prepare_payload();

  ClientCall call(server_, deadline);
  PAGODA_RETURN_IF_ERROR(call.Connect());
  PAGODA_RETURN_IF_ERROR(call.Exchange(request));
  PAGODA_RETURN_IF_ERROR(call.ReadBody(call.status() == 200 ? on_line : nullptr));
  return call.TakeResponse();
}

}  // namespace pagoda::http
