// The bodies of /v1/chat/completions and /v1/completions as Generate requests.
//
// Checks JSON, types and what only these APIs have; what a Generate request may hold is checked by
// PlanRequest. Fields that are not known are ignored, fields that would change the answer and are
// not built are refused by name, unless they hold their neutral value.
//
// Concurrency: plain functions.
#ifndef PAGODA_SERVICES_ROUTER_OPENAI_REQUEST_PARSER_H_
#define PAGODA_SERVICES_ROUTER_OPENAI_REQUEST_PARSER_H_

#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "pagoda/v1/inference.pb.h"

namespace pagoda::router::openai {

// Prompts of one /v1/completions call, times the choices of each: every one is a generation of its
// own.
inline constexpr size_t kMaxPrompts = 128;

struct CompletionRequest {
  std::vector<v1::GenerateRequest> prompts;  // in order
  uint32_t n = 1;                            // choices of each
  bool stream = false;
  bool include_usage = false;
  bool return_token_ids = false;
};

// Errors: INVALID_ARGUMENT and UNIMPLEMENTED, naming the field.
StatusOr<CompletionRequest> ParseChatRequest(std::string_view body);
StatusOr<CompletionRequest> ParseCompletionRequest(std::string_view body);

}  // namespace pagoda::router::openai

#endif  // PAGODA_SERVICES_ROUTER_OPENAI_REQUEST_PARSER_H_
