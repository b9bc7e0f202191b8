// Deadlines cross gRPC as times of the system clock; inside Pagoda they are monotonic.
//
// Concurrency: plain functions.
#ifndef PAGODA_COMMON_RPC_DEADLINE_H_
#define PAGODA_COMMON_RPC_DEADLINE_H_

#include <algorithm>
#include <chrono>

#include "common/base/clock.h"

namespace pagoda::rpc {

// The deadline for gRPC: `deadline`, but at most `limit` from now.
inline std::chrono::system_clock::time_point ToGrpcDeadline(TimePoint deadline, Duration limit,
                                                            TimePoint now) {
  Duration left = deadline > now + limit ? limit : std::max(deadline - now, Duration::zero());
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(left);
}

// The monotonic time at which a call's deadline passes; TimePoint::max() when it has none.
inline TimePoint FromGrpcDeadline(std::chrono::system_clock::time_point deadline, TimePoint now) {
  auto left = deadline - std::chrono::system_clock::now();
  // gRPC says "none" with the largest time, which added to another would overflow.
  bool none = left > std::chrono::hours(24 * 365);
  return none ? TimePoint::max() : now + std::chrono::duration_cast<Duration>(left);
}

}  // namespace pagoda::rpc

#endif  // PAGODA_COMMON_RPC_DEADLINE_H_
