// Network addresses as people write them: "127.0.0.1:7070", "localhost:0", "[::1]:7070"; and the
// names of processes.
//
// Concurrency: plain functions, no state.
#ifndef PAGODA_COMMON_BASE_ADDRESS_H_
#define PAGODA_COMMON_BASE_ADDRESS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace pagoda {

struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;

  // With brackets around an IPv6 host.
  std::string ToString() const;
};

// Errors: INVALID_ARGUMENT naming the text.
StatusOr<HostPort> ParseHostPort(std::string_view text);

// 127.0.0.0/8, ::1 or "localhost".
bool IsLoopback(const HostPort& address);

// OK for a well-formed loopback address. Anything else would be reachable from other hosts, and
// there is no authentication yet.
Status CheckListenAddress(std::string_view text);

// Whether a process of the cluster may be called so: 1 to 63 of a-z, 0-9 and "-", as hosts are.
bool IsProcessName(std::string_view name);

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_ADDRESS_H_
