// What one HTTP server allows, each limit with its reason.
//
// Concurrency: plain values.
#ifndef PAGODA_COMMON_HTTP_HTTP_LIMITS_H_
#define PAGODA_COMMON_HTTP_HTTP_LIMITS_H_

#include <chrono>
#include <cstddef>

#include "common/base/clock.h"

namespace pagoda::http {

struct HttpLimits {
  // Request line and headers (431). Also how far a pipelining client is read ahead.
  size_t header_bytes = 32 << 10;
  // One body (413): a million-token prompt as JSON ids fits.
  size_t body_bytes = 16 << 20;
  // All bodies being received or handled (503): 16 of the largest, so that clients together cannot
  // fill the memory of the process.
  size_t total_body_bytes = 256 << 20;
  // Open connections; the next one is answered 503 and closed. Each costs a descriptor and a
  // buffer.
  size_t connections = 1024;
  // What one stream may have waiting for a slow reader: more than any answer of a 16k context.
  size_t stream_buffer_bytes = 8 << 20;
  // A kept-alive connection without a request: longer than the 60 s of common load balancers.
  Duration idle_timeout = std::chrono::seconds(75);
  // From a request's first byte to the end of its headers: honest clients send them at once.
  Duration header_timeout = std::chrono::seconds(10);
  // From the headers to the end of the body: 16 MiB at 280 KB/s.
  Duration body_timeout = std::chrono::seconds(60);
  // A response of which the client takes no byte for this long is cut (design: slow readers).
  Duration stall_timeout = std::chrono::seconds(30);
  // After a last answer, what still arrives is read and dropped for this long: closing with unread
  // bytes makes the kernel reset the connection, and the client may lose the answer.
  Duration linger_timeout = std::chrono::seconds(2);
  // An answer that is complete when the server stops is still written for this long: what a client
  // that reads takes in one go.
  Duration stop_timeout = std::chrono::seconds(1);
};

}  // namespace pagoda::http

#endif  // PAGODA_COMMON_HTTP_HTTP_LIMITS_H_
