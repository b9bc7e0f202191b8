// Byte counts and byte strings: sizes as people write them, hex, little-endian integers.
//
// Concurrency: plain functions, no state.
#ifndef PAGODA_COMMON_BASE_BYTES_H_
#define PAGODA_COMMON_BASE_BYTES_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace pagoda {

static_assert(std::endian::native == std::endian::little, "Pagoda's formats are read in place");

// "4096", "64B", "16KiB", "512MiB", "1.5GiB" (no space, powers of 1024 only). Errors:
// INVALID_ARGUMENT naming the text for anything else, a fraction of a byte, or more than 2^62.
StatusOr<uint64_t> ParseBytes(std::string_view text);

// "512 MiB", "1.5 GiB": at most one decimal, for people; never parsed.
std::string FormatBytes(uint64_t bytes);

std::string ToHex(std::string_view bytes);            // lower case
StatusOr<std::string> FromHex(std::string_view hex);  // either case, even length

// Appends the little-endian bytes of an unsigned integer.
template <typename Int>
void AppendLe(std::string& out, Int value) {
  char bytes[sizeof(Int)];
  std::memcpy(bytes, &value, sizeof(Int));
  out.append(bytes, sizeof(Int));
}

// REQUIRES: at least sizeof(Int) bytes at `from`; no alignment needed.
template <typename Int>
Int LoadLe(const void* from) {
  Int value;
  std::memcpy(&value, from, sizeof(Int));
  return value;
}

template <typename Int>
void StoreLe(void* to, Int value) {
  std::memcpy(to, &value, sizeof(Int));
}

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_BYTES_H_
