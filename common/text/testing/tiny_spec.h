// The small vocabulary of testdata/tiny.json and what Hugging Face makes of texts with it.
//
// Concurrency: plain functions.
#ifndef PAGODA_COMMON_TEXT_TESTING_TINY_SPEC_H_
#define PAGODA_COMMON_TEXT_TESTING_TINY_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/text/tokenizer_spec.h"

namespace pagoda::text::testing {

struct TinyCase {
  std::string text;
  std::vector<uint32_t> parsed;   // as template text
  std::vector<uint32_t> spelled;  // as message text
};

struct ReplacedCase {
  std::string bytes;
  std::string text;  // Python's bytes.decode("utf-8", errors="replace")
};

// bos "<@start@>", eos "<@end@>", no template.
TokenizerSpec TinySpec();
std::vector<TinyCase> TinyCases();
std::vector<ReplacedCase> ReplacedCases();

}  // namespace pagoda::text::testing

#endif  // PAGODA_COMMON_TEXT_TESTING_TINY_SPEC_H_
