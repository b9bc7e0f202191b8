// Random identifiers from the operating system.
//
// Concurrency: plain functions, any thread.
#ifndef PAGODA_COMMON_BASE_RANDOM_H_
#define PAGODA_COMMON_BASE_RANDOM_H_

#include <cstdint>
#include <string>

namespace pagoda {

// 64 random bits, never 0 (0 means "not set" on the wire).
uint64_t RandomId();

// 32 hex digits: a request id or the trace id of a W3C traceparent.
std::string RandomHex128();

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_RANDOM_H_
