// What the engine does when a block that was loaded is wrong, or may be.
//
// A recheck found other bytes: the block or a loaded one before it is wrong. None of them is used
// again, and their producers are not loaded from again. Whoever read them and has sampled ends with
// DATA_LOSS: its tokens so far may be wrong, so nobody should continue from them.
// Whoever has not sampled yet starts again.
//
// The logits of a sequence are not finite: it ends. What it loaded may be the reason, so none of it
// is used again; whoever shares it starts again. No producer is blamed: a prompt may do this to a
// model that is right.
#include <string>
#include <utility>

#include "common/base/logging.h"
#include "services/worker/engine.h"

namespace pagoda::worker {
namespace {

// Enough to find the block in a store's logs.
std::string KeyPrefix(const BlockKey& key) { return key.ToHex().substr(0, 16); }

}  // namespace

void Engine::EndRecheck(bool computed) {
  auto count = [this](BlockRecheck::Outcome outcome, int32_t blocks) {
    metrics_->recheck_blocks[static_cast<size_t>(outcome)]->Increment(blocks);
  };
  count(BlockRecheck::Outcome::kDropped, recheck_.TakeDropped());
  if (!recheck_.running()) return;
  BlockRecheck::Result result = recheck_.Finish(computed);
  count(result.outcome, 1);
  if (result.outcome == BlockRecheck::Outcome::kDifferent) OnMismatch(result);
}

void Engine::OnMismatch(const BlockRecheck::Result& result) {
  Log(LogLevel::kError, "a loaded KV block differs from the computed one",
      {{"request_id", result.request_id},
       {"key", KeyPrefix(result.refs.back().key)},
       {"producer_instance", result.producers.back()},
       {"loaded_blocks_before_it", result.producers.size() - 1}});
  for (uint64_t producer : result.producers) transfer_->RefuseProducer(producer);
  Quarantine(result.refs[result.first_loaded], /*wrong=*/true);
}

void Engine::EndNonFinite(Sequence& sequence) {
  for (int32_t i = 0; i < sequence.table.size(); ++i) {
    BlockId block = sequence.table.at(i).id;
    if (block == kNoBlock || !blocks_.producer(block)) continue;
    const BlockRef& first = sequence.refs()[i];
    Log(LogLevel::kError, "logits are not finite: loaded KV blocks are quarantined",
        {{"request_id", sequence.request().request_id},
         {"key", KeyPrefix(first.key)},
         {"producer_instance", *blocks_.producer(block)}});
    suspects_.push_back(first);
    break;
  }
  Finish(sequence, FinishReason::kError, absl::InternalError("the model's logits are not finite"));
}

// After the step: its other sequences still get their tokens.
void Engine::QuarantineSuspects() {
  for (const BlockRef& first : std::exchange(suspects_, {})) Quarantine(first, /*wrong=*/false);
}

void Engine::Quarantine(const BlockRef& first, bool wrong) {
  Scheduler::Quarantined quarantined = scheduler_.Quarantine(first);
  const char* reason = wrong ? "a recheck found other bytes" : "logits were not finite";
  for (const BlockManager::Unindexed& block : quarantined.blocks) {
    transfer_->RefuseBlock({block.key, block.producer.value_or(0), reason});
  }
  for (Sequence* sequence : quarantined.holders) {
    if (wrong && sequence->has_sampled()) {
      Finish(*sequence, FinishReason::kError,
             absl::DataLossError("a KV block that this request read was found wrong: its tokens "
                                 "so far may be wrong"));
    } else {
      scheduler_.Restart(*sequence);
    }
  }
}

}  // namespace pagoda::worker
