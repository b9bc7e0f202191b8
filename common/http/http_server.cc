#include "common/http/http_server.h"

#include <pthread.h>

#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/post.hpp"
#include "boost/asio/steady_timer.hpp"
#include "boost/asio/strand.hpp"
#include "common/base/address.h"
#include "common/base/logging.h"
#include "common/base/mutex.h"
#include "common/http/session.h"

namespace pagoda::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Out of descriptors: trying again at once would spin.
constexpr Duration kAcceptRetry = std::chrono::milliseconds(100);

class BeastServer final : public HttpServer {
 public:
  BeastServer(const Options& options, HttpRoutes routes)
      : options_(options),
        context_(std::make_shared<SessionContext>()),
        io_(options.threads),
        acceptor_(asio::make_strand(io_)),
        accept_timer_(acceptor_.get_executor()) {
    context_->limits = options.limits;
    context_->routes = std::move(routes);
    context_->metrics = options.metrics;
    context_->on_end = [this](const void* session) { OnSessionEnd(session); };
    if (options.metrics != nullptr) {
      connections_ = &options.metrics->Gauge("http_connections", "Open HTTP connections");
      refused_ = &options.metrics->Counter("http_refused_connections_total",
                                           "HTTP connections over the limit, answered 503");
    }
  }

  ~BeastServer() override { Stop(); }

  Status Listen() {
    PAGODA_ASSIGN_OR_RETURN(HostPort address, ParseHostPort(options_.address));
    error_code error;
    tcp::resolver resolver(io_);
    auto found = resolver.resolve(address.host, std::to_string(address.port),
                                  tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error) {
      return absl::InvalidArgumentError("address \"" + options_.address + "\": " + error.message());
    }
    tcp::endpoint endpoint = *found.begin();
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) endpoint = acceptor_.local_endpoint(error);
    if (error) {
      return absl::UnavailableError("cannot listen on " + options_.address + ": " +
                                    error.message());
    }
    address_ = HostPort{endpoint.address().to_string(), endpoint.port()}.ToString();
    asio::post(acceptor_.get_executor(), [this] { Accept(); });
    MutexLock lock(mutex_);
    for (int i = 0; i < options_.threads; ++i) {
      threads_.emplace_back([this] {
        pthread_setname_np(pthread_self(), "http");
        io_.run();
      });
    }
    return absl::OkStatus();
  }

  std::string address() const override { return address_; }

  void Stop() override {
    std::vector<std::shared_ptr<Session>> sessions;
    std::vector<std::thread> threads;
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      for (auto& [key, weak] : sessions_) {
        if (auto session = weak.lock()) sessions.push_back(std::move(session));
      }
      threads.swap(threads_);
    }
    asio::post(acceptor_.get_executor(), [this] {
      error_code ignored;
      acceptor_.close(ignored);
      accept_timer_.cancel();
    });
    for (auto& session : sessions) session->Close(CloseReason::kServerStopping);
    sessions.clear();
    for (std::thread& thread : threads) thread.join();  // run() returns when all work has ended
  }

 private:
  void Accept() {
    acceptor_.async_accept(asio::make_strand(io_), [this](error_code error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (error) {
        Log(LogLevel::kWarning, "cannot accept an HTTP connection", {{"error", error.message()}});
        accept_timer_.expires_after(kAcceptRetry);
        accept_timer_.async_wait([this](error_code cancelled) {
          if (!cancelled) Accept();
        });
        return;
      }
      Begin(std::move(socket));
      Accept();
    });
  }

  void Begin(tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    std::shared_ptr<Session> session;
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      if (sessions_.size() < options_.limits.connections) {
        session = MakeSession(std::move(socket), context_);
        sessions_.emplace(session.get(), session);
        if (connections_ != nullptr) connections_->Set(static_cast<double>(sessions_.size()));
      }
    }
    if (session == nullptr) return RefuseConnection(std::move(socket));
    session->Start();
  }

  // One attempt that cannot block: the socket's buffer is empty.
  void RefuseConnection(tcp::socket socket) {
    if (refused_ != nullptr) refused_->Increment();
    std::string body = ErrorJson({.status = 503, .message = "too many connections; try again"});
    std::string reply =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
        "Connection: close\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(reply), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
  }

  void OnSessionEnd(const void* session) {
    MutexLock lock(mutex_);
    sessions_.erase(session);
    if (connections_ != nullptr) connections_->Set(static_cast<double>(sessions_.size()));
  }

  const Options options_;
  const std::shared_ptr<SessionContext> context_;
  std::string address_;
  prometheus::Gauge* connections_ = nullptr;
  prometheus::Counter* refused_ = nullptr;

  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<const void*, std::weak_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);

  // Last: destroying it destroys sessions that still wait, and they call OnSessionEnd.
  asio::io_context io_;
  tcp::acceptor acceptor_;
  asio::steady_timer accept_timer_;
};

}  // namespace

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const Options& options, HttpRoutes routes) {
  if (options.threads < 1) {
    return absl::InvalidArgumentError("threads is " + std::to_string(options.threads) +
                                      ", must be at least 1");
  }
  auto server = std::make_unique<BeastServer>(options, std::move(routes));
  PAGODA_RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace pagoda::http
