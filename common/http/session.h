// One client connection: reads requests, hands them to the routes one at a time, writes the
// answers.
//
// Life of a connection:
//   1. bytes arrive and are fed to the parser; idle, header and body timeouts watch this phase
//   2. a complete request becomes an Exchange, and the routes get it with a Responder
//   3. while it is answered, reading goes on: pipelined bytes wait (bounded), and the client's EOF
//      ends the exchange as kClientGone
//   4. the answer is written as it comes; a stall ends the connection as kSlowReader
//   5. the next request follows from 1, or the connection closes after a short linger
//
// Internal to common/http. Concurrency: Start and Close from any thread; all else on the strand.
#ifndef PAGODA_COMMON_HTTP_SESSION_H_
#define PAGODA_COMMON_HTTP_SESSION_H_

#include <atomic>
#include <functional>
#include <memory>

#include "boost/asio/ip/tcp.hpp"
#include "common/base/metrics.h"
#include "common/http/http_limits.h"
#include "common/http/responder.h"
#include "common/http/routes.h"

namespace pagoda::http {

// What all sessions of a server share; outlives them.
struct SessionContext {
  HttpLimits limits;
  HttpRoutes routes;
  Metrics* metrics = nullptr;          // may be null
  std::atomic<size_t> body_bytes = 0;  // reserved by bodies being received or handled
  std::function<void(const void* session)> on_end;
};

class Session {
 public:
  virtual ~Session() = default;
  virtual void Start() = 0;
  virtual void Close(CloseReason reason) = 0;
};

// `socket` has a strand as its executor. The session keeps itself alive until the connection ends.
std::shared_ptr<Session> MakeSession(boost::asio::ip::tcp::socket socket,
                                     std::shared_ptr<SessionContext> context);

}  // namespace pagoda::http

#endif  // PAGODA_COMMON_HTTP_SESSION_H_
