#include "common/base/bytes.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace pagoda {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {{"", 1},
                           {"B", 1},
                           {"KiB", 1024.0},
                           {"MiB", 1048576.0},
                           {"GiB", 1073741824.0},
                           {"TiB", 1099511627776.0}};

Status BadSize(std::string_view text) {
  return absl::InvalidArgumentError("not a size: \"" + std::string(text) +
                                    "\" (write bytes or a number with B, KiB, MiB, GiB or TiB, "
                                    "for example 512MiB)");
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

StatusOr<uint64_t> ParseBytes(std::string_view text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return BadSize(text);
  double number = 0;
  auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return BadSize(text);
  std::string_view unit_name(rest, text.data() + text.size() - rest);
  for (const Unit& unit : kUnits) {
    if (unit.name != unit_name) continue;
    double bytes = number * unit.bytes;
    if (bytes != std::floor(bytes) || bytes > 0x1p62) return BadSize(text);
    return static_cast<uint64_t>(bytes);
  }
  return BadSize(text);
}

std::string FormatBytes(uint64_t bytes) {
  const Unit* unit = &kUnits[1];
  for (const Unit& candidate : kUnits) {
    if (!candidate.name.empty() && bytes >= candidate.bytes) unit = &candidate;
  }
  double value = static_cast<double>(bytes) / unit->bytes;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, value == std::floor(value) ? "%.0f %s" : "%.1f %s", value,
                unit->name.data());
  return buffer;
}

std::string ToHex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (unsigned char byte : bytes) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

StatusOr<std::string> FromHex(std::string_view hex) {
  if (hex.size() % 2 != 0) return absl::InvalidArgumentError("hex string has an odd length");
  std::string bytes;
  bytes.reserve(hex.size() / 2);
  for (size_t i = 0; i < hex.size(); i += 2) {
    int high = HexDigit(hex[i]), low = HexDigit(hex[i + 1]);
    if (high < 0 || low < 0) return absl::InvalidArgumentError("not a hex digit in hex string");
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

}  // namespace pagoda
