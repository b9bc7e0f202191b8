#include "services/worker/block_recheck.h"

#include <cstring>
#include <utility>

#include "services/worker/step_plan_builder.h"

namespace pagoda::worker {

void BlockRecheck::OnLoaded(const Sequence& sequence, int32_t index) {
  if (options_.one_in == 0 || random_() % options_.one_in != 0) return;
  if (waiting_.size() == kMaxWaiting) {
    waiting_.pop_front();  // the likeliest to be evicted by now
    ++dropped_;
  }
  const int32_t count = index + 1;
  auto tokens = sequence.tokens().first(count * sequence.table.block_tokens());
  auto refs = sequence.refs().first(count);
  waiting_.push_back(
      {sequence.request().request_id, {tokens.begin(), tokens.end()}, {refs.begin(), refs.end()}});
}

bool BlockRecheck::TryStart() {
  while (!waiting_.empty()) {
    Chosen chosen = std::move(waiting_.front());
    waiting_.pop_front();
    if (Hold(chosen)) {
      current_ = std::move(chosen);
      return true;
    }
    Release();
    ++dropped_;
  }
  return false;
}

// Fills the table; false: something is not there, and what is in the table is to be given back.
bool BlockRecheck::Hold(const Chosen& chosen) {
  const auto last = static_cast<int32_t>(chosen.refs.size()) - 1;
  table_.emplace(static_cast<int32_t>(chosen.tokens.size()) / (last + 1));
  for (int32_t i = 0; i < last; ++i) {
    std::optional<BlockId> found = blocks_->Find(chosen.refs[i].key);
    if (!found) return false;
    table_->Set(i, {*found, BlockState::kReady, BlockSource::kLocal});
  }
  std::optional<BlockId> loaded = blocks_->Find(chosen.refs[last].key);
  if (!loaded) return false;
  loaded_ = *loaded;
  if (!blocks_->producer(loaded_)) return false;  // evicted, and computed since
  std::optional<BlockId> fresh = blocks_->Allocate();
  if (!fresh) return false;
  table_->Set(last, {*fresh, BlockState::kComputing, BlockSource::kComputed});
  return true;
}

void BlockRecheck::Release() {
  if (loaded_ != kNoBlock) blocks_->Release(std::exchange(loaded_, kNoBlock));
  for (int32_t i = table_->size() - 1; i >= 0; --i) blocks_->Release(table_->at(i).id);
  table_.reset();
}

void BlockRecheck::AppendTo(StepPlan& plan) const {
  const auto tokens = static_cast<int32_t>(current_.tokens.size());
  AppendSlice(current_.tokens, *table_, tokens - table_->block_tokens(), tokens, plan);
}

BlockRecheck::Result BlockRecheck::Finish(bool computed) {
  Result result{.request_id = std::move(current_.request_id), .refs = std::move(current_.refs)};
  const int32_t last = table_->size() - 1;
  if (computed) {
    std::span<const std::byte> right = memory_->Bytes(table_->at(last).id);
    std::span<const std::byte> loaded = memory_->Bytes(loaded_);
    bool equal = std::memcmp(right.data(), loaded.data(), right.size()) == 0;
    result.outcome = equal ? Outcome::kEqual : Outcome::kDifferent;
  }
  result.first_loaded = last;
  for (int32_t i = 0; i <= last; ++i) {
    std::optional<uint64_t> producer = blocks_->producer(i == last ? loaded_ : table_->at(i).id);
    if (!producer) continue;
    if (result.producers.empty()) result.first_loaded = i;
    result.producers.push_back(*producer);
  }
  Release();
  return result;
}

}  // namespace pagoda::worker
