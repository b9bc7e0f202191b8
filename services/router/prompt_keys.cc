#include "services/router/prompt_keys.h"

#include <algorithm>

#include "common/base/bytes.h"
#include "common/kv/block_key_chain.h"
#include "common/kv/identity.h"

namespace pagoda::router {

bool PromptKeys::Identity::Matches(const RegisteredWorker& worker) const {
  return space == worker.space && weight_epoch == worker.registration.weight_epoch() &&
         block_tokens == worker.registration.space().block_tokens();
}

PromptKeys::PromptKeys(const RequestPlan& plan, std::span<const uint32_t> output_ids,
                       const std::vector<std::shared_ptr<const RegisteredWorker>>& workers) {
  if (!plan.scope.keyed()) return;
  for (const auto& worker : workers) {
    if (std::any_of(identities_.begin(), identities_.end(),
                    [&](const Identity& identity) { return identity.Matches(*worker); })) {
      continue;
    }
    Identity& identity = identities_.emplace_back();
    identity.space = worker->space;
    identity.weight_epoch = worker->registration.weight_epoch();
    identity.block_tokens = worker->registration.space().block_tokens();
    BlockKeyChain chain(MakeNamespace("", identity.space, plan.tenant, 0, identity.weight_epoch),
                        MakeSharedNamespace("", identity.space, identity.weight_epoch), plan.scope,
                        identity.block_tokens);
    chain.Append(plan.prompt_ids);
    chain.Append(output_ids);
    placement::PrefixKeys& prefix = prefixes_.emplace_back();
    prefix.space = identity.space;
    prefix.block_tokens = identity.block_tokens;
    for (const BlockRef& ref : chain.refs()) {
      identity.keys += ref.key.view();
      prefix.fingerprints.push_back(LoadLe<uint64_t>(ref.key.bytes.data()));
    }
  }
}

std::string PromptKeys::BlockKeysFor(const RegisteredWorker& worker) const {
  for (const Identity& identity : identities_) {
    if (identity.Matches(worker)) return identity.keys;
  }
  return "";
}

}  // namespace pagoda::router
