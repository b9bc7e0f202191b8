// Random schedules against a model: whatever arrives, is cancelled, preempted, loaded late or not
// at all, resumed, quarantined or rechecked, every sequence gets the tokens of a lone run, and
// every block has exactly the owners it should.
//
// In some schedules loads bring wrong bytes. Who sampled while it held them may get other tokens,
// nobody else; a recheck finds a difference exactly when such a block is in the prefix.
//
// A failing case prints its seed; PAGODA_TEST_SEED=N runs that one alone. PAGODA_TEST_SCHEDULES=N
// sets how many run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "services/worker/block_recheck.h"
#include "services/worker/scheduler.h"
#include "services/worker/step_plan_builder.h"
#include "services/worker/testing/fake_model.h"

namespace pagoda::worker {
namespace {

using testing::FakeModel;

constexpr int kSchedules = 3000;
constexpr int kMaxSteps = 5000;      // a schedule that needs more makes no progress
constexpr uint32_t kVocabulary = 3;  // small, so that unrelated prompts share prefixes

struct Totals {
  int64_t preempted = 0;
  int64_t cancelled = 0;
  int64_t local = 0;
  int64_t loaded = 0;
  int64_t late = 0;
  int64_t resumed = 0;
  int64_t quarantined = 0;  // sequences that held a quarantined block
  int64_t rechecked = 0;
  int64_t recheck_dropped = 0;
  int64_t wrong = 0;       // loaded blocks
  int64_t mismatched = 0;  // rechecks
  int64_t ended_by_mismatch = 0;
  int64_t read_wrong = 0;  // sequences that ended before anybody found out
};

class RandomSchedule {
 public:
  RandomSchedule(uint64_t seed, Totals* totals)
      : random_(seed),
        totals_(totals),
        block_tokens_(Pick({2, 4, 8})),
        num_blocks_(Uniform(4, 24)),
        options_(RandomOptions()),
        wrong_rate_(Chance(0.2) ? 0.2 : 0),
        model_(num_blocks_, block_tokens_, kVocabulary),
        blocks_(num_blocks_),
        scheduler_(options_, &blocks_),
        recheck_({.one_in = static_cast<uint32_t>(Pick({0, 1, 3})), .seed = seed}, &blocks_,
                 &model_),
        plan_({.max_num_batched_tokens = options_.max_num_batched_tokens,
               .max_num_seqs = options_.max_num_seqs,
               .max_blocks_per_seq = num_blocks_}) {}

  void Run() {
    int arrivals = Uniform(1, 12);
    for (int steps = 0; arrivals > 0 || !live_.empty(); ++steps) {
      ASSERT_LT(steps, kMaxSteps) << "no progress";
      while (arrivals > 0 && (live_.empty() || Chance(0.3))) {
        Arrive();
        --arrivals;
      }
      if (!live_.empty() && Chance(0.02)) CancelOne();
      SettleSome();
      for (auto& [id, sequence] : live_) sequence->paused = Chance(0.1);
      ASSERT_NO_FATAL_FAILURE(Step());
      now_ += std::chrono::milliseconds(1);
    }
    while (!loads_.empty()) SettleSome();
    ASSERT_TRUE(scheduler_.CheckIntegrity().ok()) << scheduler_.CheckIntegrity();
    EXPECT_EQ(blocks_.num_available(), num_blocks_) << "a block is still held";
  }

 private:
  struct PendingEntry {
    LoadId load;
    int32_t entry;
    BlockId block;
    std::vector<FakeModel::Slot> bytes;
  };

  int Uniform(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  bool Chance(double p) { return std::bernoulli_distribution(p)(random_); }
  int Pick(std::vector<int> values) { return values[Uniform(0, values.size() - 1)]; }

  Scheduler::Options RandomOptions() {
    Scheduler::Options options;
    options.block_tokens = block_tokens_;
    options.enable_chunked_prefill = Chance(0.8);
    options.max_num_batched_tokens =
        options.enable_chunked_prefill ? Pick({1, 3, 7, 16, 64}) : num_blocks_ * block_tokens_;
    options.max_num_seqs = Uniform(1, 6);
    options.max_loading_blocks = std::max(1, num_blocks_ / 4);
    return options;
  }

  void Arrive() {
    GenerationRequest request;
    int capacity = num_blocks_ * block_tokens_;
    int prompt = Uniform(1, std::min(capacity, 60));
    request.max_tokens = Uniform(1, std::min(capacity - prompt + 1, 40));
    // Few heads, then random tails: prompts are equal, prefixes of each other, or part somewhere.
    std::mt19937_64 head(Uniform(0, 2));
    int common = Chance(0.3) ? prompt : Uniform(0, prompt);
    for (int i = 0; i < prompt; ++i) {
      request.prompt_ids.push_back((i < common ? head() : random_()) % kVocabulary);
    }
    request.sampling.seed = Uniform(0, 1);
    request.priority = Chance(0.2) ? 1 : 0;
    if (Chance(0.2)) request.stop_token_ids = {0};
    if (Chance(0.2)) Resume(request);
    request.cache.scope = Chance(0.9) ? CacheScope::Tenant() : CacheScope::None();
    SequenceId id{next_id_++};
    BlockKeyChain keys({}, {}, request.cache.scope, block_tokens_);
    auto sequence = std::make_unique<Sequence>(id, std::move(request), std::move(keys), now_);
    MayAskStore(*sequence);
    scheduler_.Add(sequence.get());
    live_.emplace(id, std::move(sequence));
  }

  // It is answered already, or is never: then the sequence waits until its deadline.
  void MayAskStore(Sequence& sequence) {
    if (Chance(0.5)) return;
    sequence.lookup.pending = Chance(0.5);
    sequence.lookup.deadline = now_ + std::chrono::milliseconds(Uniform(0, 5));
    for (size_t i = 0; i < sequence.matchable().size(); ++i) {
      sequence.lookup.held.push_back(Chance(0.7));
    }
  }

  // An earlier attempt delivered some tokens.
  void Resume(GenerationRequest& request) {
    request.output_ids = FakeModel::Generate(request.prompt_ids,
                                             Uniform(0, static_cast<int>(request.max_tokens) - 1),
                                             request.sampling.seed, kVocabulary);
    for (size_t i = 0; i < request.output_ids.size(); ++i) {
      if (!request.stop_token_ids.empty() && request.output_ids[i] == 0) {
        request.output_ids.resize(i);
      }
    }
    totals_->resumed += !request.output_ids.empty();
  }

  void CancelOne() {
    auto it = std::next(live_.begin(), Uniform(0, static_cast<int>(live_.size()) - 1));
    scheduler_.Remove(it->second.get());
    live_.erase(it);
    ++totals_->cancelled;
  }

  // Some transfers end: whole, or failed after writing what they like. Until then they may write,
  // too.
  void SettleSome() {
    for (size_t i = 0; i < loads_.size();) {
      PendingEntry& pending = loads_[i];
      std::span<std::byte> memory = model_.Bytes(pending.block);
      if (Chance(0.5)) std::memset(memory.data(), 0xEE, memory.size());
      if (!Chance(0.3)) {
        ++i;
        continue;
      }
      bool ok = Chance(0.8);
      if (ok) {
        std::memset(memory.data(), 0xFF, memory.size());  // behind the last slot, as when computed
        std::memcpy(memory.data(), pending.bytes.data(), pending.bytes.size() * 8);
      }
      const bool wrong = ok && Chance(wrong_rate_);
      if (wrong) memory[Uniform(0, block_tokens_ * 8 - 1)] ^= std::byte{1};
      auto taken = scheduler_.OnBlockLoaded(pending.load, pending.entry, ok,
                                            Chance(0.5) ? BlockSource::kRam : BlockSource::kDisk,
                                            /*producer=*/7);
      ASSERT_TRUE(ok || !taken);
      if (taken) recheck_.OnLoaded(*taken->sequence, taken->block_index);
      if (taken && wrong) {
        wrong_.insert(pending.block);
        ++totals_->wrong;
      }
      totals_->loaded += ok;
      loads_.erase(loads_.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  void StartLoads(const Scheduler::Step& step) {
    for (const Scheduler::LoadOrder& order : step.loads) {
      order.sequence->load_deadline = now_ + std::chrono::milliseconds(Uniform(0, 6));
      for (size_t i = 0; i < order.entries.size(); ++i) {
        const LoadEntry& entry = order.entries[i];
        loads_.push_back(
            {order.id, static_cast<int32_t>(i), entry.block,
             FakeModel::BlockOf(order.sequence->tokens(), entry.block_index, block_tokens_)});
      }
    }
  }

  void Step() {
    const Scheduler::Step& step = scheduler_.Schedule(now_);
    totals_->preempted += static_cast<int64_t>(step.preempted.size());
    for (Sequence* sequence : step.preempted) MayAskStore(*sequence);
    totals_->late += static_cast<int64_t>(scheduler_.TakeAbandonedLoads().size());
    PoisonFreed();
    StartLoads(step);
    ASSERT_TRUE(scheduler_.CheckIntegrity().ok()) << scheduler_.CheckIntegrity();
    ASSERT_NO_FATAL_FAILURE(CheckOwners());
    ASSERT_LE(step.num_rows, options_.max_num_batched_tokens);
    ASSERT_LE(static_cast<int>(step.chunks.size()), options_.max_num_seqs);
    ASSERT_NO_FATAL_FAILURE(CheckChunks(step));
    ASSERT_TRUE(!step.chunks.empty() || !step.preempted.empty() || WaitsForAnEvent());
    const bool rechecks = scheduler_.HasSpareRows(block_tokens_) && recheck_.TryStart();
    PoisonFreed();
    if (step.chunks.empty() && !rechecks) return;
    BuildStepPlan(step, plan_);
    if (rechecks) recheck_.AppendTo(plan_);
    ASSERT_LE(plan_.num_rows, options_.max_num_batched_tokens);
    for (const Scheduler::Chunk& chunk : step.chunks) {
      const Sequence& sequence = *chunk.sequence;
      if (chunk.samples && HoldsWrong(sequence, sequence.num_tokens()))
        misled_.insert(sequence.id());
    }
    ASSERT_TRUE(model_.Launch(plan_).ok());
    StepResult result;
    ASSERT_TRUE(model_.Collect({}, result).ok());
    for (const Scheduler::SequenceBlock& done : scheduler_.OnComputed(step)) CheckCompleted(done);
    scheduler_.TakeCompletedPrompts();
    ASSERT_NO_FATAL_FAILURE(CheckContents());
    size_t sample = 0;
    for (const Scheduler::Chunk& chunk : step.chunks) {
      if (!chunk.samples) continue;
      Sequence& sequence = *chunk.sequence;
      ASSERT_FALSE(sequence.paused);
      if (sequence.Append(result.samples[sample++].token)) {
        ASSERT_NO_FATAL_FAILURE(End(sequence));
      }
    }
    if (rechecks) EndRecheck();
    totals_->recheck_dropped += recheck_.TakeDropped();
    if (Chance(0.03)) QuarantineSome();
    if (::testing::Test::HasFatalFailure()) return;
    ASSERT_TRUE(scheduler_.CheckIntegrity().ok()) << scheduler_.CheckIntegrity();
    ASSERT_NO_FATAL_FAILURE(CheckOwners());
  }

  void PoisonFreed() {
    for (BlockId block : blocks_.TakeFreed()) {
      std::memset(model_.Bytes(block).data(), 0xFF, model_.block_bytes());
      wrong_.erase(block);
    }
  }

  // Whether one of the blocks of the first `num_tokens` tokens was loaded with wrong bytes.
  bool HoldsWrong(const Sequence& sequence, int32_t num_tokens) const {
    for (int32_t i = 0; i < BlocksFor(num_tokens, block_tokens_); ++i) {
      if (wrong_.contains(sequence.table.at(i).id)) return true;
    }
    return false;
  }

  void EndRecheck() {
    const bool computed = !Chance(0.1);
    BlockRecheck::Result result = recheck_.Finish(computed);
    std::vector<BlockId> blocks;
    bool wrong = false;
    for (const BlockRef& ref : result.refs) {
      blocks.push_back(*blocks_.Find(ref.key));
      wrong |= wrong_.contains(blocks.back());
    }
    for (size_t i = blocks.size(); i-- > 0;) blocks_.Release(blocks[i]);
    ASSERT_EQ(result.outcome, !computed ? BlockRecheck::Outcome::kDropped
                              : wrong   ? BlockRecheck::Outcome::kDifferent
                                        : BlockRecheck::Outcome::kEqual);
    ASSERT_FALSE(result.producers.empty());
    ++totals_->rechecked;
    if (result.outcome != BlockRecheck::Outcome::kDifferent) return;
    ++totals_->mismatched;
    for (Sequence* holder : scheduler_.Quarantine(result.refs[result.first_loaded]).holders) {
      if (holder->has_sampled()) {
        ++totals_->ended_by_mismatch;
        scheduler_.Remove(holder);
        live_.erase(holder->id());
      } else {
        scheduler_.Restart(*holder);
      }
    }
    for (size_t i = result.first_loaded; i < blocks.size(); ++i) {
      ASSERT_EQ(blocks_.references(blocks[i]), 0) << "a block that was found wrong is still read";
      ASSERT_FALSE(blocks_.Find(result.refs[i].key)) << "a block that was found wrong is found";
    }
  }

  // A loaded block is suspected: nobody uses it, or what was made from it, any more.
  void QuarantineSome() {
    for (const Sequence* sequence : scheduler_.running()) {
      for (int32_t i = 0; i < sequence->table.size(); ++i) {
        BlockId block = sequence->table.at(i).id;
        if (block == kNoBlock || !blocks_.producer(block)) continue;
        const BlockRef first = sequence->refs()[i];
        auto holders = scheduler_.Quarantine(first).holders;
        ASSERT_FALSE(holders.empty());
        for (Sequence* holder : holders) scheduler_.Restart(*holder);
        ASSERT_FALSE(blocks_.Find(first.key)) << "a quarantined block is found";
        totals_->quarantined += static_cast<int64_t>(holders.size());
        totals_->late += static_cast<int64_t>(scheduler_.TakeAbandonedLoads().size());
        return;
      }
    }
  }

  // Otherwise an engine that sleeps after an empty step would sleep for ever.
  bool WaitsForAnEvent() {
    return live_.empty() || !loads_.empty() ||
           std::any_of(live_.begin(), live_.end(), [](const auto& live) {
             return live.second->paused || live.second->lookup.pending;
           });
  }

  // What is valid is never computed into.
  void CheckChunks(const Scheduler::Step& step) {
    for (const Scheduler::Chunk& chunk : step.chunks) {
      ASSERT_EQ(chunk.start, chunk.sequence->table.frontier());
      for (int32_t i = chunk.start; i < chunk.start + chunk.count; ++i) {
        ASSERT_EQ(chunk.sequence->table.at(i / block_tokens_).state, BlockState::kComputing);
      }
    }
  }

  // Every block has the owners that it counts, and who may write it is alone with it.
  void CheckOwners() {
    std::map<BlockId, std::vector<BlockState>> owners;
    for (const Sequence* sequence : scheduler_.running()) {
      for (int32_t i = 0; i < sequence->table.size(); ++i) {
        TableBlock block = sequence->table.at(i);
        if (block.id != kNoBlock) owners[block.id].push_back(block.state);
      }
    }
    std::map<BlockId, int> writers;
    for (const PendingEntry& pending : loads_) {
      ASSERT_EQ(++writers[pending.block], 1) << "two transfers write into one block";
      for (BlockState state : owners[pending.block]) ASSERT_EQ(state, BlockState::kLoading);
      ASSERT_GT(blocks_.references(pending.block), 0) << "a transfer writes into a free block";
    }
    for (const auto& [block, states] : owners) {
      bool written = std::any_of(states.begin(), states.end(),
                                 [](BlockState state) { return state != BlockState::kReady; });
      ASSERT_TRUE(!written || states.size() == 1) << "a block that is written has two owners";
    }
    for (int32_t i = 0; i < num_blocks_; ++i) {
      const auto counted = static_cast<size_t>(blocks_.references(BlockId{i}));
      ASSERT_EQ(counted, owners[BlockId{i}].size() + writers[BlockId{i}]) << "block " << i;
    }
  }

  // All that a sequence will read is what a lone run would have written.
  void CheckContents() {
    for (const Sequence* sequence : scheduler_.running()) {
      std::vector<FakeModel::Slot> right = FakeModel::SlotsOf(sequence->tokens());
      for (int32_t i = 0; i < sequence->num_tokens(); ++i) {
        TableBlock block = sequence->table.at(i / block_tokens_);
        if (i >= sequence->table.frontier() && block.state != BlockState::kReady) continue;
        auto* slots = reinterpret_cast<FakeModel::Slot*>(model_.Bytes(block.id).data());
        if (slots[i % block_tokens_] == right[i]) continue;
        ASSERT_TRUE(HoldsWrong(*sequence, i + 1)) << "token " << i;
      }
    }
  }

  void CheckCompleted(const Scheduler::SequenceBlock& done) {
    TableBlock block = done.sequence->table.at(done.block_index);
    EXPECT_EQ(block.state, BlockState::kReady);
    EXPECT_EQ(block.source, BlockSource::kComputed);
  }

  void End(Sequence& sequence) {
    const GenerationRequest& request = sequence.request();
    std::vector<TokenId> right = FakeModel::Generate(request.prompt_ids, sequence.num_output(),
                                                     request.sampling.seed, kVocabulary);
    auto output = sequence.tokens().subspan(sequence.prompt_length());
    if (misled_.contains(sequence.id())) {
      ++totals_->read_wrong;
    } else {
      ASSERT_EQ(std::vector<TokenId>(output.begin(), output.end()), right);
    }
    GenerationUsage usage = sequence.usage();
    const uint32_t given = usage.prompt_tokens + static_cast<uint32_t>(request.output_ids.size());
    const uint32_t by_source = usage.computed + usage.local + usage.ram + usage.disk;
    ASSERT_GE(by_source, usage.prompt_tokens);
    ASSERT_LE(by_source, given);
    ASSERT_GE(by_source + usage.recomputed, given);
    ASSERT_TRUE(by_source + usage.recomputed == given || sequence.num_preemptions > 0);
    totals_->local += usage.local;
    scheduler_.Remove(&sequence);
    live_.erase(sequence.id());
  }

  std::mt19937_64 random_;
  Totals* const totals_;
  const int block_tokens_;
  const int num_blocks_;
  const Scheduler::Options options_;
  const double wrong_rate_;
  FakeModel model_;
  BlockManager blocks_;
  Scheduler scheduler_;
  BlockRecheck recheck_;
  StepPlan plan_;
  TimePoint now_{std::chrono::seconds(1)};
  uint64_t next_id_ = 1;
  std::map<SequenceId, std::unique_ptr<Sequence>> live_;
  std::vector<PendingEntry> loads_;
  std::set<BlockId> wrong_;      // loaded, with wrong bytes
  std::set<SequenceId> misled_;  // sampled while they held such a block
};

TEST(SchedulerRandomTest, EveryRandomScheduleGivesTheTokensOfALoneRun) {
  const char* one = std::getenv("PAGODA_TEST_SEED");
  const char* count = std::getenv("PAGODA_TEST_SCHEDULES");
  uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 1;
  uint64_t last = one != nullptr     ? first
                  : count != nullptr ? std::strtoull(count, nullptr, 10)
                                     : kSchedules;
  Totals totals;
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("PAGODA_TEST_SEED=" + std::to_string(seed));
    RandomSchedule(seed, &totals).Run();
    ASSERT_FALSE(HasFailure());
  }
  if (one != nullptr) return;
  // The schedules went where they were meant to go.
  EXPECT_GT(totals.preempted, 0);
  EXPECT_GT(totals.cancelled, 0);
  EXPECT_GT(totals.local, 0);
  EXPECT_GT(totals.loaded, 0);
  EXPECT_GT(totals.late, 0);
  EXPECT_GT(totals.resumed, 0);
  EXPECT_GT(totals.quarantined, 0);
  EXPECT_GT(totals.rechecked, 0);
  EXPECT_GT(totals.recheck_dropped, 0);
  EXPECT_GT(totals.wrong, 0);
  EXPECT_GT(totals.mismatched, 0);
  EXPECT_GT(totals.ended_by_mismatch, 0);
  EXPECT_GT(totals.read_wrong, 0);
  printf(
      "preempted %ld, cancelled %ld, local tokens %ld, loaded blocks %ld, abandoned loads %ld, "
      "resumed %ld, quarantined %ld, rechecked %ld, rechecks dropped %ld, wrong blocks %ld, "
      "mismatches %ld, ended by them %ld, read wrong bytes until the end %ld\n",
      totals.preempted, totals.cancelled, totals.local, totals.loaded, totals.late, totals.resumed,
      totals.quarantined, totals.rechecked, totals.recheck_dropped, totals.wrong, totals.mismatched,
      totals.ended_by_mismatch, totals.read_wrong);
}

}  // namespace
}  // namespace pagoda::worker
