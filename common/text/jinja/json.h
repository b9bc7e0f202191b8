// Values as JSON, as `transformers` gives templates the filter "tojson": Python's json.dumps with
// ensure_ascii=False.
//
// Concurrency: plain function, no state.
#ifndef PAGODA_COMMON_TEXT_JINJA_JSON_H_
#define PAGODA_COMMON_TEXT_JINJA_JSON_H_

#include <cstdint>
#include <optional>

#include "common/base/status.h"
#include "common/text/jinja/value.h"

namespace pagoda::text::jinja {

// Strings keep their marks inside the quotes. `indent`: spaces for each level, one item a line;
// absent: all on one line. Errors: INVALID_ARGUMENT for what JSON cannot hold, RESOURCE_EXHAUSTED.
StatusOr<MarkedString> ToJson(Budget& budget, const Value& value, std::optional<int64_t> indent);

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_JSON_H_
