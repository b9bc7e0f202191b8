#include "common/http/exchange.h"

#include <cstdio>
#include <utility>

#include "boost/beast/http/status.hpp"

namespace pagoda::http {
namespace {

// A line break inside a value would let it add headers of its own (response splitting).
void AppendHeaderText(std::string& out, std::string_view text) {
  for (char c : text) out += (c == '\r' || c == '\n' || c == '\0') ? ' ' : c;
}

void AppendHeader(std::string& out, std::string_view name, std::string_view value) {
  AppendHeaderText(out, name);
  out += ": ";
  AppendHeaderText(out, value);
  out += "\r\n";
}

}  // namespace

Exchange::Exchange(const Options& options, std::function<void()> wake)
    : options_(options), wake_(std::move(wake)) {}

void Exchange::AppendHead(int status, const HttpHeaders& headers, std::string_view framing) {
  status_ = status;
  auto reason = boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(status));
  size_t before = buffer_.size();
  buffer_ += options_.http_1_0 ? "HTTP/1.0 " : "HTTP/1.1 ";
  buffer_ += std::to_string(status);
  buffer_ += ' ';
  buffer_.append(reason.data(), reason.size());
  buffer_ += "\r\n";
  for (const auto& [name, value] : headers) AppendHeader(buffer_, name, value);
  buffer_ += framing;
  if (!keep_alive()) buffer_ += "Connection: close\r\n";
  buffer_ += "\r\n";
  pending_ += buffer_.size() - before;
}

void Exchange::Wake() {
  if (woken_ || !wake_) return;
  woken_ = true;
  wake_();
}

void Exchange::Send(HttpResponse response) {
  std::function<void(CloseReason)> dropped;
  MutexLock lock(mutex_);
  if (state_ != State::kWaiting) return;
  AppendHead(response.status, response.headers,
             "Content-Length: " + std::to_string(response.body.size()) + "\r\n");
  if (!options_.head) {
    buffer_ += response.body;
    pending_ += response.body.size();
  }
  state_ = State::kFinished;
  dropped.swap(on_close_);
  Wake();
}

void Exchange::Start(int status, HttpHeaders headers) {
  MutexLock lock(mutex_);
  if (state_ != State::kWaiting) return;
  AppendHead(status, headers, chunked() ? "Transfer-Encoding: chunked\r\n" : "");
  state_ = State::kStreaming;
  Wake();
}

bool Exchange::Write(std::string_view chunk) {
  MutexLock lock(mutex_);
  if (state_ != State::kStreaming) return false;
  if (chunk.empty() || options_.head) return true;
  if (pending_ + chunk.size() > options_.buffer_limit) {
    reason_ = CloseReason::kSlowReader;
    state_ = State::kAborted;
    Wake();
    return false;
  }
  size_t before = buffer_.size();
  if (chunked()) {
    char size[20];
    int length = std::snprintf(size, sizeof(size), "%zx\r\n", chunk.size());
    buffer_.append(size, length);
  }
  buffer_ += chunk;
  if (chunked()) buffer_ += "\r\n";
  pending_ += buffer_.size() - before;
  Wake();
  return true;
}

void Exchange::Finish() {
  std::function<void(CloseReason)> dropped;
  MutexLock lock(mutex_);
  if (state_ != State::kStreaming) return;
  if (chunked() && !options_.head) {
    buffer_ += "0\r\n\r\n";
    pending_ += 5;
  }
  state_ = State::kFinished;
  dropped.swap(on_close_);
  Wake();
}

void Exchange::Abort() {
  std::function<void(CloseReason)> dropped;
  MutexLock lock(mutex_);
  if (state_ != State::kWaiting && state_ != State::kStreaming) return;
  state_ = State::kAborted;
  dropped.swap(on_close_);
  Wake();
}

void Exchange::Abandoned() {
  bool waiting = false;
  {
    MutexLock lock(mutex_);
    waiting = state_ == State::kWaiting;
  }
  if (waiting) {
    Send(ErrorResponse({.status = 500, .message = "the request was dropped without an answer"}));
  } else {
    Abort();
  }
}

size_t Exchange::pending_bytes() const {
  MutexLock lock(mutex_);
  return pending_;
}

void Exchange::OnClose(std::function<void(CloseReason)> callback) {
  CloseReason reason;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kWaiting || state_ == State::kStreaming) {
      on_close_.swap(callback);
      return;
    }
    if (state_ != State::kClosed) return;
    reason = reason_;
  }
  callback(reason);
}

Exchange::Progress Exchange::Take(std::string& out) {
  MutexLock lock(mutex_);
  woken_ = false;
  if (state_ == State::kAborted || state_ == State::kClosed) return Progress::kAborted;
  if (out.empty()) {
    out.swap(buffer_);
  } else {
    out += buffer_;
    buffer_.clear();
  }
  return state_ == State::kFinished ? Progress::kFinished : Progress::kOpen;
}

void Exchange::Wrote(size_t bytes) {
  MutexLock lock(mutex_);
  pending_ -= bytes < pending_ ? bytes : pending_;
}

void Exchange::Closed(CloseReason reason) {
  std::function<void(CloseReason)> callback;
  std::function<void()> wake;  // may hold the last reference to the session: freed after the lock
  {
    MutexLock lock(mutex_);
    wake.swap(wake_);
    callback.swap(on_close_);
    // An abort by the buffer limit knows better why the connection ends.
    if (state_ != State::kAborted) reason_ = reason;
    reason = reason_;
    if (state_ != State::kFinished) state_ = State::kClosed;
    buffer_.clear();
    pending_ = 0;
  }
  if (callback) callback(reason);
}

int Exchange::status() const {
  MutexLock lock(mutex_);
  return status_;
}

}  // namespace pagoda::http
