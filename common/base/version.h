// The version of this build and of the protocol it speaks.
#ifndef PAGODA_COMMON_BASE_VERSION_H_
#define PAGODA_COMMON_BASE_VERSION_H_

#include <cstdint>

namespace pagoda {

inline constexpr char kVersion[] = "0.1.0";

// Peers use the highest version that both have (proto/README.md).
inline constexpr uint32_t kProtocolMin = 1;
inline constexpr uint32_t kProtocolMax = 1;

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_VERSION_H_
