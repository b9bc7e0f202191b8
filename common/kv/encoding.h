// How varying strings enter something that is hashed, without ambiguity.
//
// Concurrency: plain functions.
#ifndef PAGODA_COMMON_KV_ENCODING_H_
#define PAGODA_COMMON_KV_ENCODING_H_

#include <string>
#include <string_view>

namespace pagoda {

// lp(x): u32 length, then the bytes. Two lists of strings never give the same bytes.
// REQUIRES: shorter than 4 GiB.
void AppendLp(std::string& out, std::string_view bytes);

// The fp32 bits in 8 hex digits: exact, and the same on every machine.
std::string FloatHex(float value);

// `text` itself. REQUIRES: none of '=', ';' and line break in it, which separate the fields of the
// canonical texts; else the process ends, because an ambiguous identity must not be made.
std::string_view Plain(std::string_view text);

}  // namespace pagoda

#endif  // PAGODA_COMMON_KV_ENCODING_H_
