// The router's books about its workers: who is there, what this router has in flight on each, and
// which blocks each should hold. A request is counted the moment it is placed, never when a report
// arrives, so that a burst does not go where the last report saw an idle worker.
//
// It sends nothing and reads no clock but the injected one; how to choose is the policy's business.
//
// Concurrency: every method may be called from any thread.
#ifndef PAGODA_COMMON_PLACEMENT_PLACEMENT_H_
#define PAGODA_COMMON_PLACEMENT_PLACEMENT_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/kv/block_key.h"
#include "common/placement/known_keys.h"
#include "common/placement/policy.h"

namespace pagoda::placement {

// Known keys of one worker at most, about 80 bytes each; a worker's own pool is usually smaller.
inline constexpr size_t kMaxKnownKeys = 1 << 18;

struct WorkerInfo {
  uint64_t instance_id = 0;
  std::string name;
  Space space;
  uint32_t max_num_seqs = 1;
  uint32_t total_blocks = 0;  // of its pool; 0: unknown
};

// The fingerprints of a prompt's full blocks under one space. At most floor((prompt - 1) /
// block_tokens) of them count: the last token is always computed.
struct PrefixKeys {
  Space space;
  uint32_t block_tokens = 0;
  std::vector<uint64_t> fingerprints;
};

struct PlacementRequest {
  uint32_t prompt_tokens = 0;
  std::vector<PrefixKeys> prefixes;  // one for each space; none when nothing may be reused
  std::string pinned;                // a worker's name, or empty
  std::set<uint64_t> excluded;       // instances that have failed this request
  std::optional<Space> space;        // only workers of this space: a resume must not change tokens
};

struct Placed {
  uint64_t ticket = 0;  // names this attempt in OnFirstToken and OnEnd
  uint64_t instance_id = 0;
  Decision decision;
};

class Placement {
 public:
  Placement(std::unique_ptr<PlacementPolicy> policy, const Clock* clock);

  // An instance that is known already keeps its books.
  void AddWorker(const WorkerInfo& info);
  void RemoveWorker(uint64_t instance_id);
  // Whether new requests may go there; true at first.
  void SetAccepting(uint64_t instance_id, bool accepting);
  // From load reports; 0 or less is ignored.
  void SetPrefillRate(uint64_t instance_id, double tokens_per_second);

  // Chooses and counts. Errors: UNAVAILABLE when no worker may take it, INVALID_ARGUMENT for an
  // unknown pinned worker.
  StatusOr<Placed> Place(const PlacementRequest& request);

  // The prompt is computed. Harmless for an ended ticket.
  void OnFirstToken(uint64_t ticket);
  // The attempt is over, in whatever way.
  void OnEnd(uint64_t ticket);

  size_t num_workers() const;
  size_t num_in_flight() const;
  // FAILED_PRECONDITION naming the first book that does not add up.
  Status CheckIntegrity() const;

 private:
  struct Worker {
    explicit Worker(const WorkerInfo& info);
    WorkerInfo info;
    KnownKeys known;
    bool accepting = true;
    uint32_t requests = 0;
    uint32_t decoding = 0;
    uint64_t waiting_prefill_tokens = 0;
    double prefill_tokens_per_second;
    double decode_seconds;
  };
  struct Attempt {
    uint64_t instance_id = 0;
    uint32_t prefill_tokens = 0;  // that the worker must compute
    bool decoding = false;
    TimePoint first_token{};
  };

  static size_t KnownBlocks(const Worker& worker, const PlacementRequest& request,
                            const PrefixKeys** prefix);
  std::vector<const Worker*> Candidates(const PlacementRequest& request, Status* why_none) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  mutable Mutex mutex_;
  std::unique_ptr<PlacementPolicy> policy_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Worker> workers_ ABSL_GUARDED_BY(mutex_);    // by instance id
  std::map<uint64_t, Attempt> attempts_ ABSL_GUARDED_BY(mutex_);  // by ticket
  uint64_t next_ticket_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace pagoda::placement

#endif  // PAGODA_COMMON_PLACEMENT_PLACEMENT_H_
