#include "common/base/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace pagoda {
namespace {

Status BadAddress(std::string_view text) {
  return absl::InvalidArgumentError("not an address: \"" + std::string(text) +
                                    "\" (write HOST:PORT, for example 127.0.0.1:7070)");
}

}  // namespace

std::string HostPort::ToString() const {
  bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

StatusOr<HostPort> ParseHostPort(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return BadAddress(text);
  std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);
  if (host.front() == '[') {
    if (host.size() < 4 || host.back() != ']') return BadAddress(text);
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return BadAddress(text);
  }
  HostPort address{std::string(host), 0};
  auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || port.empty() || end != port.data() + port.size()) {
    return BadAddress(text);
  }
  return address;
}

bool IsLoopback(const HostPort& address) {
  if (address.host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, address.host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

Status CheckListenAddress(std::string_view text) {
  PAGODA_ASSIGN_OR_RETURN(HostPort address, ParseHostPort(text));
  if (IsLoopback(address)) return absl::OkStatus();
  return absl::InvalidArgumentError("\"" + std::string(text) +
                                    "\" is not a loopback address; this version listens on "
                                    "127.0.0.0/8, [::1] or localhost only");
}

bool IsProcessName(std::string_view name) {
  return !name.empty() && name.size() <= 63 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace pagoda
