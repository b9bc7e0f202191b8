// CRC32C (Castagnoli polynomial, RFC 3720 appendix B.4), by ISA-L's hardware code.
//
// Concurrency: plain functions, no state.
#ifndef PAGODA_COMMON_BASE_CRC32C_H_
#define PAGODA_COMMON_BASE_CRC32C_H_

#include <cstddef>
#include <cstdint>

namespace pagoda {

// The CRC of `size` bytes. `previous` is the CRC of the bytes before them (0 at the start), so
// Crc32c(b, n2, Crc32c(a, n1)) is the CRC of a followed by b.
uint32_t Crc32c(const void* data, size_t size, uint32_t previous = 0);

// Copies `size` bytes and returns their CRC as above, in one pass over memory (a cache-sized piece
// is copied and then summed while it is hot). The ranges must not overlap.
uint32_t CopyWithCrc32c(void* to, const void* from, size_t size, uint32_t previous = 0);

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_CRC32C_H_
