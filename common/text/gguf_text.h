// The tokenizer, chat template and special ids that a GGUF file carries (keys "tokenizer.*").
//
// Concurrency: plain function, no state.
#ifndef PAGODA_COMMON_TEXT_GGUF_TEXT_H_
#define PAGODA_COMMON_TEXT_GGUF_TEXT_H_

#include "common/base/status.h"
#include "common/text/tokenizer_spec.h"

namespace pagoda::model {
class GgufFile;
}

namespace pagoda::text {

// Errors: those of GgufFile for a key that is missing or of another type. Whether ids, types and
// merges fit the vocabulary is checked by what is built from the spec (text_model.h).
StatusOr<TokenizerSpec> ReadTokenizerSpec(const model::GgufFile& file);

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_GGUF_TEXT_H_
