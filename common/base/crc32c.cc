#include "common/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>

namespace pagoda {
namespace {

// ISA-L takes an int length; a piece of this size also stays in the L1 or L2 cache between the copy
// and the sum.
constexpr size_t kPieceBytes = 16 * 1024;

uint32_t Extend(uint32_t inverted, const void* data, size_t size) {
  auto* bytes = const_cast<unsigned char*>(static_cast<const unsigned char*>(data));
  return crc32_iscsi(bytes, static_cast<int>(size), inverted);
}

}  // namespace

uint32_t Crc32c(const void* data, size_t size, uint32_t previous) {
  constexpr size_t kMaxCallBytes = size_t{1} << 30;
  uint32_t inverted = ~previous;
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    size_t piece = std::min(size, kMaxCallBytes);
    inverted = Extend(inverted, bytes, piece);
    bytes += piece;
    size -= piece;
  }
  return ~inverted;
}

uint32_t CopyWithCrc32c(void* to, const void* from, size_t size, uint32_t previous) {
  uint32_t inverted = ~previous;
  char* target = static_cast<char*>(to);
  const char* source = static_cast<const char*>(from);
  while (size > 0) {
    size_t piece = std::min(size, kPieceBytes);
    std::memcpy(target, source, piece);
    // The sum runs over what was written, so that it vouches for the copy and not for the source.
    inverted = Extend(inverted, target, piece);
    target += piece;
    source += piece;
    size -= piece;
  }
  return ~inverted;
}

}  // namespace pagoda
