// Errors about one field of a client's request: the message names it, and the name also travels
// beside the message so that the OpenAI error object can say `param`.
//
// Concurrency: plain functions.
#ifndef PAGODA_SERVICES_ROUTER_FIELD_ERROR_H_
#define PAGODA_SERVICES_ROUTER_FIELD_ERROR_H_

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace pagoda::router {

// INVALID_ARGUMENT "field: message". `code` is the OpenAI error code, empty for the usual one.
Status InvalidField(std::string_view field, std::string_view message, std::string_view code = "");

// UNIMPLEMENTED: the field asks for something that is not built.
Status UnsupportedField(std::string_view field, std::string_view message);

// NOT_FOUND for a model that is not served.
Status UnknownModel(std::string_view model);

// The field and code of an error made above, else empty.
std::string ErrorField(const Status& status);
std::string ErrorCode(const Status& status);

// What a message may quote of a client's text: at most 64 bytes.
std::string Quote(std::string_view text);

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_FIELD_ERROR_H_
