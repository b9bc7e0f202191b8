// A request inside the worker: its tokens, its blocks and what was counted for it. It decides
// nothing; the scheduler moves it.
//
// Concurrency: the engine thread only.
#ifndef PAGODA_SERVICES_WORKER_SEQUENCE_H_
#define PAGODA_SERVICES_WORKER_SEQUENCE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/kv/block_key_chain.h"
#include "services/worker/block_table.h"
#include "services/worker/generation_request.h"

namespace pagoda::worker {

enum class SequenceId : uint64_t {};
// Names one load of blocks for one sequence; never used twice.
enum class LoadId : uint64_t {};

enum class SequenceState : uint8_t { kWaiting, kRunning, kFinished };

// What the store was asked about a sequence's blocks, and said.
struct StoreLookup {
  bool pending = false;
  TimePoint deadline = TimePoint::max();  // after it the sequence starts without the answer
  std::vector<bool> held;                 // [block index]; shorter than the prompt: not held
};

class Sequence {
 public:
  // `keys` holds nothing yet; it is given the request's tokens here.
  Sequence(SequenceId id, GenerationRequest request, BlockKeyChain keys, TimePoint arrival);

  SequenceId id() const { return id_; }
  const GenerationRequest& request() const { return request_; }

  // Prompt and output. KV exists for a prefix of them, never for the last one before it is
  // computed.
  std::span<const TokenId> tokens() const { return tokens_; }
  int32_t num_tokens() const { return static_cast<int32_t>(tokens_.size()); }
  int32_t prompt_length() const { return static_cast<int32_t>(request_.prompt_ids.size()); }
  int32_t num_output() const { return num_tokens() - prompt_length(); }
  // Whether a token was sampled here.
  bool has_sampled() const {
    return num_output() > static_cast<int32_t>(request_.output_ids.size());
  }
  // The most tokens that will ever need KV: the last sampled one never does.
  int32_t max_kv_tokens() const {
    return prompt_length() + static_cast<int32_t>(request_.max_tokens) - 1;
  }

  // One ref for each full block of tokens(); none when nothing is keyed.
  std::span<const BlockRef> refs() const { return keys_.refs(); }
  const Namespace& NamespaceOf(int32_t block) const { return keys_.NamespaceOf(block); }
  // The refs that may be matched or loaded: at least the last token is always computed.
  std::span<const BlockRef> matchable() const;

  // Null when the request has none.
  Penalties* penalties() { return penalties_ ? &*penalties_ : nullptr; }

  // Adds a sampled token. Returns why the sequence ends with it, if it does.
  std::optional<FinishReason> Append(TokenId token);

  // The frontier moved from `from` to `to`: counts each token of the prompt and of `output_ids`
  // once, by its source, and what is computed again. Returns true when this completed the prompt
  // for the first time.
  bool Account(int32_t from, int32_t to);

  // Counts so far; `pushed` is the transfer's to know.
  GenerationUsage usage() const;

  // Earlier in the queue: higher priority first, then the older.
  friend bool Before(const Sequence& a, const Sequence& b) {
    if (a.request_.priority != b.request_.priority)
      return a.request_.priority > b.request_.priority;
    if (a.arrival_ != b.arrival_) return a.arrival_ < b.arrival_;
    return a.id_ < b.id_;
  }

  // The scheduler's; others only read them.
  SequenceState state = SequenceState::kWaiting;
  BlockTable table;
  int32_t num_published = 0;  // leading blocks of the table that are in the prefix index
  int32_t num_preemptions = 0;
  StoreLookup lookup;
  std::optional<LoadId> load;  // while blocks are LOADING
  TimePoint load_deadline = TimePoint::max();

  // The engine's: the sink has no room, so nothing is computed for this sequence.
  bool paused = false;

 private:
  const SequenceId id_;
  const GenerationRequest request_;
  const TimePoint arrival_;  // moved back by the request's age
  std::vector<TokenId> tokens_;
  BlockKeyChain keys_;
  std::optional<Penalties> penalties_;
  int32_t high_water_ = 0;  // the furthest frontier ever
  std::array<uint32_t, kNumBlockSources> tokens_by_source_{};
  uint32_t recomputed_ = 0;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_SEQUENCE_H_
