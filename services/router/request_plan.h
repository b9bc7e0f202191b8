// A client's request, checked and tokenised: what a generation needs to run, and to run again on
// another worker.
//
// Concurrency: plain values; PlanRequest may be called from any thread.
#ifndef PAGODA_SERVICES_ROUTER_REQUEST_PLAN_H_
#define PAGODA_SERVICES_ROUTER_REQUEST_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/kv/block_key_chain.h"
#include "pagoda/v1/inference.pb.h"
#include "services/router/served_model.h"

namespace pagoda::router {

// Limits that the protos promise to clients.
inline constexpr size_t kMaxRoleBytes = 64;
inline constexpr int kMaxStopStrings = 4;
inline constexpr size_t kMaxStopStringBytes = 1024;
inline constexpr uint32_t kDefaultMaxTokens = 16;  // of /v1/completions, as OpenAI's

struct RequestPlan {
  std::string request_id;  // 32 hex digits
  std::string model_name;  // to answer with
  std::shared_ptr<const ServedModel> model;
  std::vector<uint32_t> prompt_ids;
  v1::SamplingParams sampling;  // seed set, temperature and top_p explicit
  uint32_t choice = 0;          // which of the client's n; part of the random numbers' key
  uint32_t max_tokens = 0;
  uint32_t min_tokens = 0;
  std::vector<uint32_t> stop_token_ids;  // the client's
  bool ignore_eos = false;
  std::vector<std::string> stop_strings;
  CacheScope scope = CacheScope::Tenant();
  v1::CacheScope scope_field;
  std::string tenant;
  int32_t priority = 0;
  std::string pinned_worker;
  bool return_token_ids = false;
  TimePoint arrived{};
  TimePoint deadline{};
};

struct PlanLimits {
  uint32_t max_model_len = 0;  // prompt and output tokens together
  bool allow_placement_override = false;
};

// Checks every field, tokenises, fills defaults and draws a seed if there is none; `arrived` and
// `deadline` are the caller's to set. Errors name the field, the value and the limit:
//   INVALID_ARGUMENT  a field is wrong, or prompt and max_tokens exceed the context
//   NOT_FOUND         unknown model
//   UNIMPLEMENTED     a field asks for something that is not built
StatusOr<RequestPlan> PlanRequest(const v1::GenerateRequest& request,
                                  const std::shared_ptr<const ServedModel>& model,
                                  const PlanLimits& limits);

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_REQUEST_PLAN_H_
