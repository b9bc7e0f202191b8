#include "services/worker/scheduler.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace pagoda::worker {
namespace {

bool BeforePointer(const Sequence* a, const Sequence* b) { return Before(*a, *b); }

void InsertInOrder(std::vector<Sequence*>& queue, Sequence* sequence) {
  queue.insert(std::upper_bound(queue.begin(), queue.end(), sequence, BeforePointer), sequence);
}

bool WouldLoad(const Sequence& sequence, size_t block) {
  const std::vector<bool>& held = sequence.lookup.held;
  return block < held.size() && held[block];
}

bool IsDecode(const Sequence& sequence) {
  return sequence.num_tokens() - sequence.table.frontier() == 1;
}

}  // namespace

Scheduler::Scheduler(const Options& options, BlockManager* blocks)
    : options_(options), blocks_(blocks), loads_(blocks) {}

void Scheduler::Add(Sequence* sequence) { InsertInOrder(waiting_, sequence); }

void Scheduler::Remove(Sequence* sequence) {
  AbandonLoad(*sequence);
  ReleaseBlocks(*sequence);
  sequence->state = SequenceState::kFinished;
  std::erase(running_, sequence);
  std::erase(waiting_, sequence);
  std::erase(completed_prompts_, sequence);
}

const Scheduler::Step& Scheduler::Schedule(TimePoint now) {
  step_.chunks.clear();
  step_.loads.clear();
  step_.num_rows = 0;
  step_.preempted.clear();
  now_ = now;
  planned_keys_.clear();
  loading_keys_.clear();
  budget_ = options_.max_num_batched_tokens;
  for (Sequence* sequence : running_) {
    MatchAtFrontier(*sequence);
    NoteLoading(*sequence);
  }
  if (options_.enable_chunked_prefill) {
    PlanDecodes();
    Admit();
    PlanPrefills();
  } else {
    Admit();
    PlanPrefills();
    PlanDecodes();
  }
  step_.num_rows = options_.max_num_batched_tokens - budget_;
  return step_;
}

void Scheduler::PlanDecodes() {
  // By index: planning may preempt, which shortens the vector at its end.
  for (size_t i = 0; i < running_.size() && budget_ > 0; ++i) {
    if (IsDecode(*running_[i])) PlanChunk(*running_[i]);
  }
}

void Scheduler::PlanPrefills() {
  for (size_t i = 0; i < running_.size() && budget_ > 0; ++i) {
    if (!IsDecode(*running_[i])) PlanChunk(*running_[i]);
  }
}

void Scheduler::Admit() {
  if (!step_.preempted.empty()) return;  // there is no room
  for (size_t i = 0; i < waiting_.size();) {
    if (static_cast<int32_t>(running_.size()) >= options_.max_num_seqs) return;
    Sequence& sequence = *waiting_[i];
    if (sequence.lookup.pending && now_ < sequence.lookup.deadline) {
      if (sequence.num_preemptions > 0) return;  // who lost its blocks is not overtaken
      ++i;
      continue;
    }
    if (!Fits(sequence)) return;
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    InsertInOrder(running_, &sequence);
    sequence.state = SequenceState::kRunning;
    sequence.lookup.pending = false;
    MatchAtFrontier(sequence);
    StartLoad(sequence);
    // One token is left (a short prompt, or all else was cached): a decode, whose turn was before.
    bool late_decode = options_.enable_chunked_prefill && IsDecode(sequence);
    if (late_decode && budget_ > 0) PlanChunk(sequence);
  }
}

// Blocks for the sequence's known tokens and the next `slack_tokens`, beyond those it holds.
int32_t Scheduler::BlocksOwed(const Sequence& sequence, int32_t slack_tokens) const {
  int32_t tokens = std::max(sequence.num_tokens(), std::min(sequence.num_tokens() + slack_tokens,
                                                            sequence.max_kv_tokens()));
  int32_t total = BlocksFor(tokens, options_.block_tokens);
  return std::max(0, total - sequence.table.num_held());
}

bool Scheduler::Fits(const Sequence& sequence) const {
  const int32_t slack = kSlackBlocks * options_.block_tokens;
  BlockManager::Probe probe = blocks_->ProbePrefix(sequence.matchable());
  int32_t available = blocks_->num_available() - probe.cached;
  for (const Sequence* other : running_) {
    available -= BlocksOwed(*other, sequence.num_preemptions > 0 ? slack : 0);
  }
  return BlocksOwed(sequence, slack) - probe.matched <= available;
}

void Scheduler::StartLoad(Sequence& sequence) {
  LoadOrder order{.sequence = &sequence};
  int32_t cap =
      static_cast<int32_t>(std::min(sequence.lookup.held.size(), sequence.matchable().size()));
  for (int32_t i = sequence.table.frontier_block(); i < cap; ++i) {
    if (!WouldLoad(sequence, i) || loading_keys_.contains(sequence.refs()[i].key)) continue;
    if (loads_.num_blocks() + static_cast<int32_t>(order.entries.size()) >=
        options_.max_loading_blocks) {
      break;
    }
    std::optional<BlockId> block = blocks_->Allocate();
    if (!block) break;
    sequence.table.Set(i, {*block, BlockState::kLoading, BlockSource::kRam});
    order.entries.push_back({i, *block});
  }
  if (order.entries.empty()) return;
  order.id = loads_.Start(&sequence, order.entries);
  sequence.load = order.id;
  sequence.load_deadline = TimePoint::max();  // whoever starts the transfer knows better
  step_.loads.push_back(std::move(order));
  NoteLoading(sequence);
}

void Scheduler::NoteLoading(const Sequence& sequence) {
  if (!sequence.load || now_ >= sequence.load_deadline) return;
  for (int32_t i = 0; i < sequence.table.size(); ++i) {
    if (sequence.table.at(i).state != BlockState::kLoading) continue;
    loading_keys_.insert(sequence.refs()[i].key);
  }
}

// Whether the frontier's block is this sequence's to compute now.
bool Scheduler::MayCompute(Sequence& sequence) {
  if (sequence.paused) return false;
  const BlockTable& table = sequence.table;
  if (table.at(table.frontier_block()).state == BlockState::kLoading) {
    if (now_ < sequence.load_deadline) return false;
    AbandonLoad(sequence);
  }
  auto refs = sequence.refs();
  size_t block = table.frontier_block();
  if (table.frontier() % table.block_tokens() != 0 || block >= refs.size()) return true;
  const BlockKey& key = refs[block].key;
  if (planned_keys_.contains(key)) return false;
  // It waits for another's load of what it would have loaded itself.
  return !(WouldLoad(sequence, block) && loading_keys_.contains(key));
}

void Scheduler::PlanChunk(Sequence& sequence) {
  if (!MayCompute(sequence)) return;
  int32_t start = sequence.table.frontier();
  int32_t end = sequence.table.ChunkLimit(sequence.num_tokens());
  if (!options_.enable_chunked_prefill && end - start > budget_) return;
  end = HoldBlocks(sequence, start, std::min(end, start + budget_));
  if (end == start) return;
  budget_ -= end - start;
  step_.chunks.push_back({&sequence, start, end - start, end == sequence.num_tokens()});
  auto refs = sequence.refs();
  for (size_t i = start / options_.block_tokens;
       i < refs.size() && static_cast<int32_t>(i) * options_.block_tokens < end; ++i) {
    planned_keys_.insert(refs[i].key);
  }
}

// Gets the blocks of rows [start, end); returns where the chunk has to end for want of blocks.
int32_t Scheduler::HoldBlocks(Sequence& sequence, int32_t start, int32_t end) {
  const int32_t size = options_.block_tokens;
  for (int32_t i = start / size; i * size < end; ++i) {
    if (sequence.table.at(i).state != BlockState::kEmpty) continue;
    if (!HoldBlock(sequence, i)) return std::max(start, i * size);
  }
  return end;
}

bool Scheduler::HoldBlock(Sequence& sequence, int32_t index) {
  while (true) {
    if (std::optional<BlockId> block = blocks_->Allocate()) {
      sequence.table.Set(index, {*block, BlockState::kComputing, BlockSource::kComputed});
      return true;
    }
    if (running_.back() == &sequence) return false;
    Preempt(*running_.back());
  }
}

void Scheduler::Preempt(Sequence& victim) {
  auto planned = std::find_if(step_.chunks.begin(), step_.chunks.end(),
                              [&](const Chunk& chunk) { return chunk.sequence == &victim; });
  if (planned != step_.chunks.end()) {
    budget_ += planned->count;
    step_.chunks.erase(planned);
  }
  // Admission counts what every running sequence needs in this step, so it admits none of its
  // victims; a load that was ordered but never starts would never be settled.
  assert(std::none_of(step_.loads.begin(), step_.loads.end(),
                      [&](const LoadOrder& order) { return order.sequence == &victim; }));
  BackToWaiting(victim);
  step_.preempted.push_back(&victim);
}

void Scheduler::BackToWaiting(Sequence& sequence) {
  AbandonLoad(sequence);
  ReleaseBlocks(sequence);
  std::erase(running_, &sequence);
  InsertInOrder(waiting_, &sequence);
  sequence.state = SequenceState::kWaiting;
  sequence.lookup = {};
  ++sequence.num_preemptions;
}

void Scheduler::Restart(Sequence& sequence) {
  BackToWaiting(sequence);
  std::erase(completed_prompts_, &sequence);
}

Scheduler::Quarantined Scheduler::Quarantine(const BlockRef& first) {
  Quarantined result{.blocks = blocks_->Unindex(first.key), .holders = {}};
  const auto depth = static_cast<int32_t>(first.depth);
  for (Sequence* sequence : running_) {
    auto refs = sequence->refs();
    if (refs.size() <= first.depth || refs[first.depth].key != first.key) continue;
    // Whatever lies there is that block or was made from it, or was loaded as such.
    for (int32_t i = depth; i < sequence->table.size(); ++i) {
      if (sequence->table.at(i).id == kNoBlock) continue;
      result.holders.push_back(sequence);
      break;
    }
  }
  return result;
}

bool Scheduler::HasSpareRows(int32_t rows) const {
  return waiting_.empty() && rows <= budget_ &&
         static_cast<int32_t>(step_.chunks.size()) < options_.max_num_seqs &&
         std::all_of(running_.begin(), running_.end(),
                     [](const Sequence* sequence) { return IsDecode(*sequence); });
}

void Scheduler::AbandonLoad(Sequence& sequence) {
  if (!sequence.load) return;
  loads_.Abandon(*sequence.load);
  abandoned_.push_back(*sequence.load);
  sequence.load.reset();
  for (int32_t i = 0; i < sequence.table.size(); ++i) {
    TableBlock block = sequence.table.at(i);
    if (block.state != BlockState::kLoading) continue;
    sequence.table.Set(i, {});
    blocks_->Release(block.id);
  }
}

void Scheduler::ReleaseBlocks(Sequence& sequence) {
  for (int32_t i = sequence.table.size() - 1; i >= 0; --i) {
    BlockId block = sequence.table.at(i).id;
    if (block != kNoBlock) blocks_->Release(block);
  }
  sequence.table.Clear();
  sequence.num_published = 0;
}

// Takes indexed blocks from the frontier on, as long as there are any.
void Scheduler::MatchAtFrontier(Sequence& sequence) {
  BlockTable& table = sequence.table;
  while (table.frontier() % table.block_tokens() == 0) {
    auto index = table.frontier_block();
    auto refs = sequence.matchable();
    if (static_cast<size_t>(index) >= refs.size()) return;
    std::optional<BlockId> found = blocks_->Find(refs[index].key);
    if (!found) return;
    BlockId replaced = table.at(index).id;  // LOADING, and not needed any more
    table.Set(index, {*found, BlockState::kReady, BlockSource::kLocal});
    if (replaced != kNoBlock) blocks_->Release(replaced);
    assert(sequence.num_published == index);
    sequence.num_published = index + 1;
    Advance(sequence, table.frontier());
  }
}

void Scheduler::Advance(Sequence& sequence, int32_t position) {
  int32_t from = sequence.table.frontier();
  sequence.table.AdvanceTo(position);
  if (sequence.Account(from, sequence.table.frontier())) completed_prompts_.push_back(&sequence);
  PublishReady(sequence);
}

// Puts the blocks behind which everything is valid into the prefix index, in order.
void Scheduler::PublishReady(Sequence& sequence) {
  BlockTable& table = sequence.table;
  int32_t end = std::min(table.frontier_block(), static_cast<int32_t>(sequence.refs().size()));
  for (int32_t& i = sequence.num_published; i < end; ++i) {
    TableBlock block = table.at(i);
    BlockId parent = i == 0 ? kNoBlock : table.at(i - 1).id;
    BlockId used = blocks_->Publish(block.id, sequence.refs()[i].key, parent);
    bool first = used == block.id;
    table.Set(i, {used, BlockState::kReady, block.source});
    if (first && block.source == BlockSource::kComputed) completed_.push_back({&sequence, i});
  }
}

std::vector<Scheduler::SequenceBlock> Scheduler::OnComputed(const Step& step) {
  completed_.clear();
  for (const Chunk& chunk : step.chunks) Advance(*chunk.sequence, chunk.start + chunk.count);
  return std::exchange(completed_, {});
}

std::optional<Scheduler::SequenceBlock> Scheduler::OnBlockLoaded(LoadId load, int32_t entry,
                                                                 bool ok, BlockSource source,
                                                                 uint64_t producer) {
  LoadTable::Settled settled = loads_.Settle(load, entry);
  if (settled.sequence == nullptr) return std::nullopt;
  Sequence& sequence = *settled.sequence;
  if (settled.last) sequence.load.reset();
  const int32_t index = settled.entry.block_index;
  TableBlock block = sequence.table.at(index);
  // A block of the same key from this pool may have replaced it.
  if (block.id != settled.entry.block || block.state != BlockState::kLoading) return std::nullopt;
  if (!ok) {
    sequence.table.Set(index, {});
    blocks_->Release(block.id);
    return std::nullopt;
  }
  blocks_->SetProducer(block.id, producer);
  sequence.table.Set(index, {block.id, BlockState::kReady, source});
  Advance(sequence, sequence.table.frontier());
  return SequenceBlock{&sequence, index};
}

TimePoint Scheduler::NextDeadline() const {
  TimePoint next = TimePoint::max();
  for (const Sequence* sequence : waiting_) {
    if (sequence->lookup.pending && sequence->lookup.deadline > now_) {
      next = std::min(next, sequence->lookup.deadline);
    }
  }
  for (const Sequence* sequence : running_) {
    if (sequence->load && sequence->load_deadline > now_) {
      next = std::min(next, sequence->load_deadline);
    }
  }
  return next;
}

Status Scheduler::CheckIntegrity() const {
  PAGODA_RETURN_IF_ERROR(blocks_->CheckIntegrity());
  auto broken = [](const Sequence& sequence, const char* rule) {
    return absl::InternalError("sequence " + std::to_string(static_cast<uint64_t>(sequence.id())) +
                               ": " + rule);
  };
  std::vector<int32_t> references(blocks_->num_blocks());
  for (BlockId block : loads_.HeldBlocks()) ++references[static_cast<int32_t>(block)];
  for (const Sequence* sequence : running_) {
    const BlockTable& table = sequence->table;
    if (sequence->state != SequenceState::kRunning) return broken(*sequence, "is not running");
    if (table.frontier() >= sequence->num_tokens())
      return broken(*sequence, "has nothing to compute");
    bool loading = false;
    for (int32_t i = 0; i < table.size(); ++i) {
      TableBlock block = table.at(i);
      if ((block.id == kNoBlock) != (block.state == BlockState::kEmpty)) {
        return broken(*sequence, "has a block without a state, or a state without a block");
      }
      if (i < table.frontier_block() && block.state != BlockState::kReady) {
        return broken(*sequence, "has a block behind its frontier that is not READY");
      }
      loading |= block.state == BlockState::kLoading;
      if (block.id != kNoBlock) ++references[static_cast<int32_t>(block.id)];
    }
    if (loading && !sequence->load) return broken(*sequence, "waits for a load that is not there");
  }
  for (const Sequence* sequence : waiting_) {
    if (sequence->state != SequenceState::kWaiting) return broken(*sequence, "is not waiting");
    if (sequence->table.num_held() != 0) return broken(*sequence, "waits and holds blocks");
  }
  for (int32_t i = 0; i < blocks_->num_blocks(); ++i) {
    if (blocks_->references(BlockId{i}) != references[i]) {
      return absl::InternalError("block " + std::to_string(i) + ": references without an owner");
    }
  }
  return absl::OkStatus();
}

}  // namespace pagoda::worker
