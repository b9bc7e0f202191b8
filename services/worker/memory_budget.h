// What a model runner keeps in memory beside the KV pool, for the line that a worker prints at
// start.
//
// Concurrency: a plain value.
#ifndef PAGODA_SERVICES_WORKER_MEMORY_BUDGET_H_
#define PAGODA_SERVICES_WORKER_MEMORY_BUDGET_H_

#include <cstdint>

namespace pagoda::worker {

// All in bytes.
struct MemoryBudget {
  int64_t weights = 0;      // packed
  int64_t activations = 0;  // grows with max_num_batched_tokens
  int64_t logits = 0;       // grows with max_num_seqs and the vocabulary
  int64_t scores = 0;       // attention's running states, per thread
  int64_t sampler = 0;      // per thread

  int64_t total() const { return weights + activations + logits + scores + sampler; }
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_MEMORY_BUDGET_H_
