// How long the other end of a connection may stay silent before it counts as gone.
#ifndef PAGODA_COMMON_RPC_CONNECTION_LIMITS_H_
#define PAGODA_COMMON_RPC_CONNECTION_LIMITS_H_

#include "common/base/clock.h"

namespace pagoda::rpc {

// Of services on one network. Tests raise them: no machine may be too slow for a test.
struct ConnectionLimits {
  // One attempt to connect, HTTP/2 greeting included. A busy peer and a long way need more than the
  // first pause between attempts, 100 ms; more than this is as good as frozen.
  Duration connect = std::chrono::seconds(2);
  // A keepalive ping is sent each `ping_interval`; one that stays unanswered for `ping_timeout`
  // ends the connection and its calls.
  Duration ping_interval = std::chrono::seconds(5);
  Duration ping_timeout = std::chrono::seconds(2);
};

}  // namespace pagoda::rpc

#endif  // PAGODA_COMMON_RPC_CONNECTION_LIMITS_H_
