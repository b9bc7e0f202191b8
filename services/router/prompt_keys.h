// The block keys of one prompt and of the output that is already there, under every identity that
// live workers have: made once per request and again for a resume, used to place it and sent along
// with it.
//
// Concurrency: immutable once made.
#ifndef PAGODA_SERVICES_ROUTER_PROMPT_KEYS_H_
#define PAGODA_SERVICES_ROUTER_PROMPT_KEYS_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/placement/placement.h"
#include "services/router/request_plan.h"
#include "services/router/worker_registry.h"

namespace pagoda::router {

class PromptKeys {
 public:
  // Nothing is keyed under cache scope none. Without a cluster secret and without tenant
  // generations.
  PromptKeys(const RequestPlan& plan, std::span<const uint32_t> output_ids,
             const std::vector<std::shared_ptr<const RegisteredWorker>>& workers);

  // For placement: one for each space.
  const std::vector<placement::PrefixKeys>& prefixes() const { return prefixes_; }

  // 32 bytes for each full block, as WorkerGenerateRequest.block_keys; empty when the worker's
  // identity was not among those given.
  std::string BlockKeysFor(const RegisteredWorker& worker) const;

 private:
  struct Identity {
    Space space;
    uint64_t weight_epoch = 0;
    uint32_t block_tokens = 0;
    std::string keys;

    bool Matches(const RegisteredWorker& worker) const;
  };

  std::vector<Identity> identities_;
  std::vector<placement::PrefixKeys> prefixes_;
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_PROMPT_KEYS_H_
