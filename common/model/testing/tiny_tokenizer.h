// The tokenizer metadata of tiny models.
//
// Concurrency: plain functions.
#ifndef PAGODA_COMMON_MODEL_TESTING_TINY_TOKENIZER_H_
#define PAGODA_COMMON_MODEL_TESTING_TINY_TOKENIZER_H_

#include <cstdint>

#include "common/model/testing/gguf_writer.h"

namespace pagoda::model::testing {

// Adds tokenizer.ggml.* with exactly `vocabulary` tokens and tokenizer.chat_template.
void AddTinyTokenizer(GgufWriter& writer, int32_t vocabulary);

}  // namespace pagoda::model::testing

#endif  // PAGODA_COMMON_MODEL_TESTING_TINY_TOKENIZER_H_
