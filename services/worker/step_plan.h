// What one step computes, as plain data: the scheduler writes a StepPlan, a ModelRunner reads it.
//
// A plan has no logic and no pointers into the scheduler: every array is allocated once, for the
// limits, and reused by each step, so that a step allocates nothing and a device backend can copy
// it as it is. It does not say where a token came from or who waits for it.
//
// Rows are the tokens computed in this step, grouped in slices. A slice is a run of rows of one
// sequence that follow each other in that sequence's view of the KV cache. Two slices may belong to
// one sequence (computing before and behind a block that is ready): all K and V of a step are
// written before any of its rows attends, layer by layer.
//
// Position and slot are different things: the position (int32, absolute in the sequence) turns the
// rotary embedding and numbers the sampled token; the slot says where K and V lie. They are equal
// until a retention method drops tokens.
//
// Concurrency: one thread at a time; from Launch until Collect returns, nobody writes to the plan.
#ifndef PAGODA_SERVICES_WORKER_STEP_PLAN_H_
#define PAGODA_SERVICES_WORKER_STEP_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "services/worker/sampling_params.h"

namespace pagoda::worker {

struct StepLimits {
  int32_t max_num_batched_tokens = 512;  // rows of a step: bounds activations
  int32_t max_num_seqs = 64;       // sequences in a step: bounds logits and the sampler's buffers
  int32_t max_blocks_per_seq = 0;  // ceil(max_model_len / block_tokens)
};

// Changes the logits of one sampled row (grammar, banned words, penalties): to finite values, or to
// -infinity where a token is forbidden. The outcome must depend on the request's own tokens only.
// Called inside Launch or Collect, once per sample and step, on any thread of the runner.
class LogitsProcessor {
 public:
  virtual ~LogitsProcessor() = default;
  virtual void Apply(std::span<float> logits) = 0;  // [vocabulary]
};

struct PlanSlice {
  int32_t first_row = 0;
  int32_t num_rows = 0;     // at least 1
  int32_t first_block = 0;  // the sequence's block table is block_tables[first_block, + num_blocks)
  int32_t num_blocks = 0;   // covers every slot up to the last row's
};

struct PlanSample {
  // The sampled token follows this row; its absolute position is positions[row] + 1.
  int32_t row = 0;
  SamplingParams params;
  // Not owned, applied in this order; null: nothing to do. No two samples share one.
  LogitsProcessor* mask = nullptr;
  LogitsProcessor* penalties = nullptr;
};

struct StepPlan {
  explicit StepPlan(const StepLimits& limits)
      : limits(limits),
        tokens(limits.max_num_batched_tokens),
        positions(limits.max_num_batched_tokens),
        slots(limits.max_num_batched_tokens),
        slices(limits.max_num_batched_tokens),
        block_tables(static_cast<size_t>(limits.max_num_seqs) * limits.max_blocks_per_seq),
        samples(limits.max_num_seqs) {}

  StepLimits limits;
  int32_t num_rows = 0;
  int32_t num_slices = 0;
  int32_t num_block_entries = 0;
  int32_t num_samples = 0;

  // [num_rows] token ids, below the vocabulary's size
  std::vector<uint32_t> tokens;
  // [num_rows] ascending inside a slice
  std::vector<int32_t> positions;
  // [num_rows] slots in the sequence's view, consecutive inside a slice. Slot s lies in entry
  // s / block_tokens of the slice's block table. Row r attends to the slots 0 to slots[r].
  std::vector<int32_t> slots;
  // [num_slices] cover all rows, in order
  std::vector<PlanSlice> slices;
  // [num_block_entries] physical block ids; slices may share entries
  std::vector<int32_t> block_tables;
  // [num_samples] logits exist for these rows only; a row may have several samples (the choices of
  // one prompt)
  std::vector<PlanSample> samples;
};

enum class SampleOutcome : uint8_t {
  kToken,
  kNonFiniteLogits,  // the request ends with an error and what it loaded is quarantined
  kNothingAllowed,   // the mask and the penalties left no token
};

struct SampledToken {
  uint32_t token = 0;  // valid for kToken only
  SampleOutcome outcome = SampleOutcome::kToken;
};

// In the order of StepPlan::samples.
struct StepResult {
  std::vector<SampledToken> samples;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_STEP_PLAN_H_
