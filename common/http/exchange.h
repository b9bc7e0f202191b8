// One request's answer on its way to the connection: the Responder that a handler holds, and the
// byte buffer that the session empties.
//
// It writes HTTP/1.1 framing (status line, headers, chunks) and knows no socket.
//
// Concurrency: the Responder side may be used from any thread, the session side from one at a time.
#ifndef PAGODA_COMMON_HTTP_EXCHANGE_H_
#define PAGODA_COMMON_HTTP_EXCHANGE_H_

#include <string>

#include "common/base/mutex.h"
#include "common/http/responder.h"

namespace pagoda::http {

class Exchange final : public Responder {
 public:
  struct Options {
    bool head = false;        // the body is left out, its length is not
    bool http_1_0 = false;    // no chunked encoding: the end of the connection ends the body
    bool keep_alive = true;   // false: "Connection: close"
    size_t buffer_limit = 0;  // bytes that a stream may have waiting
  };
  enum class Progress { kOpen, kFinished, kAborted };

  // `wake` tells the session that there is something to do. It runs under this object's lock, so it
  // may only post.
  Exchange(const Options& options, std::function<void()> wake);

  void Send(HttpResponse response) override;
  void Start(int status, HttpHeaders headers) override;
  bool Write(std::string_view chunk) override;
  void Finish() override;
  void Abort() override;
  size_t pending_bytes() const override;
  void OnClose(std::function<void(CloseReason)> callback) override;

  // The handler dropped its reference: a 500 or an abort if the answer is incomplete.
  void Abandoned();

  // Session side. Take moves the waiting bytes to the end of `out` and says how far the answer is;
  // Wrote counts bytes that the connection has taken. Closed ends the exchange: no later wake.
  Progress Take(std::string& out);
  void Wrote(size_t bytes);
  void Closed(CloseReason reason);
  bool keep_alive() const { return options_.keep_alive && !options_.http_1_0; }
  int status() const;  // 0 before an answer began

 private:
  enum class State { kWaiting, kStreaming, kFinished, kAborted, kClosed };

  void AppendHead(int status, const HttpHeaders& headers, std::string_view framing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool chunked() const { return !options_.http_1_0; }

  const Options options_;
  mutable Mutex mutex_;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  std::function<void(CloseReason)> on_close_ ABSL_GUARDED_BY(mutex_);
  State state_ ABSL_GUARDED_BY(mutex_) = State::kWaiting;
  CloseReason reason_ ABSL_GUARDED_BY(mutex_) = CloseReason::kClientGone;
  std::string buffer_ ABSL_GUARDED_BY(mutex_);
  size_t pending_ ABSL_GUARDED_BY(mutex_) = 0;
  int status_ ABSL_GUARDED_BY(mutex_) = 0;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace pagoda::http

#endif  // PAGODA_COMMON_HTTP_EXCHANGE_H_
