// What travels with every call to a store: until when, for whom, and how it is called off.
//
// Concurrency: a plain value; the stop token may be signalled from any thread.
#ifndef PAGODA_COMMON_KV_CALL_CONTEXT_H_
#define PAGODA_COMMON_KV_CALL_CONTEXT_H_

#include <cstdint>
#include <stop_token>
#include <string>

#include "common/base/clock.h"

namespace pagoda {

struct CallContext {
  // When the caller stops waiting. What is not there by then is answered as failed with
  // DEADLINE_EXCEEDED. A client caps it with a limit of its own.
  TimePoint deadline = TimePoint::max();
  std::string tenant;
  int32_t priority = 0;    // higher goes first
  std::stop_token cancel;  // from a std::stop_source of the caller
  std::string trace_id;    // 32 hex digits, or empty
};

}  // namespace pagoda

#endif  // PAGODA_COMMON_KV_CALL_CONTEXT_H_
