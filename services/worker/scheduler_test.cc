#include "services/worker/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "services/worker/testing/test_sequences.h"

namespace pagoda::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::MakeSequence;
using testing::Request;
using testing::Tokens;

constexpr int32_t kBlock = 4;

TimePoint At(int milliseconds) { return TimePoint(std::chrono::milliseconds(milliseconds)); }

// Steps a scheduler without a model: every sampled token is 7.
class SchedulerTest : public ::testing::Test {
 protected:
  using Chunks = std::vector<std::pair<uint64_t, std::pair<int, int>>>;  // {id, {start, count}}

  void Make(int32_t num_blocks, Scheduler::Options options = {}) {
    options.block_tokens = kBlock;
    blocks_.emplace(num_blocks);
    scheduler_.emplace(options, &*blocks_);
  }

  Sequence* Add(uint64_t id, GenerationRequest request, std::vector<bool> held = {}) {
    auto sequence = MakeSequence(id, std::move(request), kBlock, At(static_cast<int>(id)));
    sequence->lookup.held = std::move(held);
    scheduler_->Add(sequence.get());
    return (live_[id] = std::move(sequence)).get();
  }

  void Remove(uint64_t id) {
    scheduler_->Remove(live_[id].get());
    live_.erase(id);
  }

  // One whole step. What ends is removed.
  Chunks Step(TimePoint now = At(0)) {
    const Scheduler::Step& step = scheduler_->Schedule(now);
    loads_ = step.loads;
    preempted_ += static_cast<int>(step.preempted.size());
    Check();
    for (spare_rows_ = 0; spare_rows_ < 1000 && scheduler_->HasSpareRows(spare_rows_ + 1);) {
      ++spare_rows_;
    }
    Chunks chunks;
    std::vector<uint64_t> ended;
    completed_ = scheduler_->OnComputed(step);
    for (const Scheduler::Chunk& chunk : step.chunks) {
      auto id = static_cast<uint64_t>(chunk.sequence->id());
      chunks.push_back({id, {chunk.start, chunk.count}});
      computed_ += chunk.count;
      if (chunk.samples && chunk.sequence->Append(7)) ended.push_back(id);
    }
    for (uint64_t id : ended) {
      recomputed_ += live_[id]->usage().recomputed;
      Remove(id);
    }
    Check();
    return chunks;
  }

  void Check() { ASSERT_TRUE(scheduler_->CheckIntegrity().ok()) << scheduler_->CheckIntegrity(); }

  std::vector<uint64_t> Ids(const std::vector<Sequence*>& queue) {
    std::vector<uint64_t> ids;
    for (Sequence* sequence : queue) ids.push_back(static_cast<uint64_t>(sequence->id()));
    return ids;
  }

  std::optional<BlockManager> blocks_;
  std::optional<Scheduler> scheduler_;
  std::map<uint64_t, std::unique_ptr<Sequence>> live_;
  std::vector<Scheduler::LoadOrder> loads_;
  std::vector<Scheduler::SequenceBlock> completed_;
  int32_t spare_rows_ = 0;  // of the last step
  int preempted_ = 0;
  int64_t computed_ = 0;
  int64_t recomputed_ = 0;
};

// Names of the arguments of Chunks.
std::pair<uint64_t, std::pair<int, int>> Rows(uint64_t id, int start, int count) {
  return {id, {start, count}};
}

TEST_F(SchedulerTest, DecodesGoFirstAndPrefillTakesWhatIsLeftOfTheBudget) {
  Make(100, {.max_num_batched_tokens = 10});
  Add(1, Request(Tokens(6), 10));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 0, 6)));
  Add(2, Request(Tokens(23, 100), 10));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 6, 1), Rows(2, 0, 9)));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 7, 1), Rows(2, 9, 9)));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 8, 1), Rows(2, 18, 5)));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 9, 1), Rows(2, 23, 1)));
}

TEST_F(SchedulerTest, WithoutChunkedPrefillWholePromptsGoFirst) {
  Make(100, {.max_num_batched_tokens = 24, .enable_chunked_prefill = false});
  Add(1, Request(Tokens(6), 10));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 0, 6)));
  Add(2, Request(Tokens(24, 100), 10));
  EXPECT_THAT(Step(), ElementsAre(Rows(2, 0, 24)));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 6, 1), Rows(2, 24, 1)));
}

TEST_F(SchedulerTest, RunsNoMoreSequencesThanAllowed) {
  Make(100, {.max_num_seqs = 2});
  for (uint64_t id = 1; id <= 3; ++id) Add(id, Request(Tokens(3, id * 100), 2));
  Step();
  EXPECT_THAT(Ids(scheduler_->running()), ElementsAre(1, 2));
  EXPECT_THAT(Ids(scheduler_->waiting()), ElementsAre(3));
  Step();
  Step();
  EXPECT_THAT(Ids(scheduler_->running()), ElementsAre(3));
}

TEST_F(SchedulerTest, HigherPriorityIsAdmittedFirst) {
  Make(100, {.max_num_seqs = 1});
  Add(1, Request(Tokens(3), 1));
  GenerationRequest urgent = Request(Tokens(3, 100), 1);
  urgent.priority = 1;
  Add(2, urgent);
  EXPECT_THAT(Step(), ElementsAre(Rows(2, 0, 3)));
}

TEST_F(SchedulerTest, ALongRequestIsNotOvertakenByShortOnesThatWouldFit) {
  Make(10);
  Add(1, Request(Tokens(16), 8));  // 6 blocks when done
  Step();
  Add(2, Request(Tokens(30, 100), 2));  // 8 blocks: not beside the first
  Add(3, Request(Tokens(3, 200), 1));
  Step();
  EXPECT_THAT(Ids(scheduler_->running()), ElementsAre(1));
  EXPECT_THAT(Ids(scheduler_->waiting()), ElementsAre(2, 3));
}

TEST_F(SchedulerTest, AFinishedPromptIsFoundByTheNextOne) {
  Make(100);
  Add(1, Request(Tokens(12), 1));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 0, 12)));
  EXPECT_EQ(completed_.size(), 3u);
  Sequence* second = Add(2, Request(Tokens(12), 2));
  EXPECT_THAT(Step(), ElementsAre(Rows(2, 8, 4)));  // the last token is always computed
  EXPECT_EQ(second->usage().local, 8u);
  EXPECT_EQ(second->usage().computed, 4u);
  EXPECT_THAT(completed_, IsEmpty()) << "what is in the index already is not pushed again";
}

TEST_F(SchedulerTest, TwoEqualPromptsInFlightAreComputedOnce) {
  Make(100, {.max_num_batched_tokens = 16});
  Add(1, Request(Tokens(41), 3));
  Sequence* second = Add(2, Request(Tokens(41), 3));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 0, 16)));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 16, 16)));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 32, 9)));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 41, 1), Rows(2, 40, 1)));
  EXPECT_EQ(second->usage().local, 40u);
  EXPECT_EQ(second->usage().computed, 1u);
}

TEST_F(SchedulerTest, AWaiterTakesOverAtTheLastPublishedBlockWhenTheFirstIsCancelled) {
  Make(100, {.max_num_batched_tokens = 10});
  Add(1, Request(Tokens(41), 3));
  Sequence* second = Add(2, Request(Tokens(41), 3));
  Step();
  Step();
  EXPECT_EQ(live_[1]->table.frontier(), 20);
  EXPECT_EQ(second->table.frontier(), 8);  // matched what was published when the step began
  Remove(1);
  EXPECT_THAT(Step(), ElementsAre(Rows(2, 20, 10)));
}

TEST_F(SchedulerTest, TheLowestPriorityYoungestIsPreempted) {
  Make(12);
  GenerationRequest urgent = Request(Tokens(14, 100), 20);
  urgent.priority = 1;
  Add(1, Request(Tokens(14), 20));
  Add(2, urgent);
  Step();
  ASSERT_THAT(Ids(scheduler_->running()), ElementsAre(2, 1));
  while (preempted_ == 0) Step();
  EXPECT_THAT(Ids(scheduler_->running()), ElementsAre(2));
  EXPECT_THAT(Ids(scheduler_->waiting()), ElementsAre(1));
}

TEST_F(SchedulerTest, APreemptedRequestResumesOnlyWhenItsNextFourBlocksFit) {
  Make(12);
  Add(1, Request(Tokens(14), 20));
  Sequence* second = Add(2, Request(Tokens(14, 100), 20));
  while (preempted_ == 0) Step();
  while (second->state == SequenceState::kWaiting) {
    EXPECT_EQ(live_.size(), 2u);
    Step();
    if (live_.size() == 1) break;
  }
  EXPECT_EQ(live_.count(1), 0u) << "beside the first there was never room for 4 blocks of each";
  while (!live_.empty()) Step();
  EXPECT_EQ(preempted_, 1);
}

TEST_F(SchedulerTest, AResumeLeavesTheOthersTheirNextFourBlocksAndANewRequestNeedNot) {
  Make(20);
  Add(1, Request(Tokens(39), 60));
  Step();                                                    // holds 10 of 20
  Sequence* resumed = Add(2, Request(Tokens(15, 100), 30));  // 8 blocks with its next four
  resumed->num_preemptions = 1;
  Step();
  EXPECT_THAT(Ids(scheduler_->waiting()), ElementsAre(2));
  resumed->num_preemptions = 0;
  Step();
  EXPECT_THAT(Ids(scheduler_->running()), ElementsAre(1, 2));
}

TEST_F(SchedulerTest, TheYoungestWaitsForABlockInsteadOfLosingItsOwn) {
  Make(6);
  Add(1, Request(Tokens(7), 4));
  Add(2, Request(Tokens(7, 100), 4));
  while (!live_.empty()) Step();
  EXPECT_EQ(preempted_, 0);
  EXPECT_EQ(recomputed_, 0);
}

// worker.md: the total of recomputed tokens is bounded.
TEST_F(SchedulerTest, CompetingSequencesDoNotPlayPingPong) {
  Make(32, {.max_num_seqs = 8});
  constexpr int kOutput = 80;
  for (uint64_t id = 1; id <= 8; ++id) Add(id, Request(Tokens(16, id * 1000), kOutput));
  for (int steps = 0; !live_.empty(); ++steps) {
    ASSERT_LT(steps, 10000);
    Step();
  }
  EXPECT_GT(preempted_, 0);
  // A resume costs at most a whole sequence, and is paid for by 4 blocks of progress of each.
  int64_t resumes = 8 * kOutput / (Scheduler::kSlackBlocks * kBlock);
  EXPECT_LE(preempted_, resumes);
  EXPECT_LT(recomputed_, 8 * kOutput);
}

TEST_F(SchedulerTest, APausedSequenceIsNotComputedAndTheOthersGoOn) {
  Make(100);
  Sequence* first = Add(1, Request(Tokens(6), 10));
  Add(2, Request(Tokens(6, 100), 10));
  Step();
  first->paused = true;
  EXPECT_THAT(Step(), ElementsAre(Rows(2, 6, 1)));
  first->paused = false;
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 6, 1), Rows(2, 7, 1)));
}

TEST_F(SchedulerTest, RowsAreSpareOnlyWhileNobodyWaitsLoadsOrComputesAPrompt) {
  Make(100, {.max_num_batched_tokens = 16, .max_num_seqs = 3});
  Step();
  EXPECT_EQ(spare_rows_, 16);
  Add(1, Request(Tokens(20), 100));
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 0, 16)));
  EXPECT_EQ(spare_rows_, 0);
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 16, 4)));
  EXPECT_EQ(spare_rows_, 0) << "a prompt is computed, though 12 rows are left";
  Step();
  EXPECT_EQ(spare_rows_, 15);
  Sequence* asks = Add(2, Request(Tokens(3, 100), 100));
  asks->lookup = {.pending = true, .deadline = At(10), .held = {}};
  Step();
  EXPECT_EQ(spare_rows_, 0) << "one waits for the store's answer";
  asks->lookup.pending = false;
  Step();
  EXPECT_EQ(spare_rows_, 0);
  Step();
  EXPECT_EQ(spare_rows_, 14);
  Add(3, Request(Tokens(14, 200), 2), {true, true});
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 23 + 1, 1), Rows(2, 4, 1)));
  EXPECT_EQ(spare_rows_, 0) << "one waits for its blocks";
  Remove(3);
  Step();
  EXPECT_EQ(spare_rows_, 14);
}

TEST_F(SchedulerTest, NoRowIsSpareWhenTheStepHasAsManySlicesAsItMay) {
  Make(100, {.max_num_seqs = 2});
  Add(1, Request(Tokens(3), 100));
  Add(2, Request(Tokens(3, 100), 100));
  Step();
  Step();
  EXPECT_EQ(spare_rows_, 0);
  Remove(2);
  Step();
  EXPECT_GT(spare_rows_, 0);
}

TEST_F(SchedulerTest, RemovingASequenceGivesItsBlocksBackAtOnce) {
  Make(100);
  Add(1, Request(Tokens(30), 10));
  Add(2, Request(Tokens(30, 100), 10), std::vector<bool>(7, true));
  Step();
  EXPECT_LT(blocks_->num_available(), 100);
  Remove(1);
  Remove(2);
  EXPECT_EQ(scheduler_->TakeAbandonedLoads().size(), 1u);
  EXPECT_EQ(blocks_->num_available(), 100 - 7) << "only what a transfer still writes into";
  for (int i = 0; i < 7; ++i) scheduler_->OnBlockLoaded(loads_[0].id, i, true, BlockSource::kRam);
  EXPECT_EQ(blocks_->num_available(), 100);
  Check();
}

TEST_F(SchedulerTest, LoadedBlocksAreUsedAndOnlyTheRestIsComputed) {
  Make(100);
  Sequence* sequence = Add(1, Request(Tokens(14), 2), {true, true, true});
  EXPECT_THAT(Step(), IsEmpty());
  ASSERT_EQ(loads_.size(), 1u);
  ASSERT_EQ(loads_[0].entries.size(), 3u);
  scheduler_->OnBlockLoaded(loads_[0].id, 1, true, BlockSource::kDisk);
  scheduler_->OnBlockLoaded(loads_[0].id, 0, true, BlockSource::kRam);
  scheduler_->OnBlockLoaded(loads_[0].id, 2, true, BlockSource::kRam);
  EXPECT_EQ(sequence->table.frontier(), 12);
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 12, 2)));
  EXPECT_EQ(sequence->usage().ram, 8u);
  EXPECT_EQ(sequence->usage().disk, 4u);
  EXPECT_EQ(sequence->usage().computed, 2u);
  EXPECT_EQ(blocks_->num_indexed(), 3);
  EXPECT_THAT(completed_, IsEmpty()) << "what came from the store does not go back";
}

TEST_F(SchedulerTest, TwoEqualPromptsInFlightAreLoadedOnce) {
  Make(100);
  Add(1, Request(Tokens(14), 2), {true, true, true});
  Sequence* second = Add(2, Request(Tokens(14), 2), {true, true, true});
  EXPECT_THAT(Step(), IsEmpty());
  ASSERT_EQ(loads_.size(), 1u);
  LoadId load = loads_[0].id;
  for (int i = 0; i < 3; ++i) scheduler_->OnBlockLoaded(load, i, true, BlockSource::kRam);
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 12, 2), Rows(2, 12, 2)));
  EXPECT_EQ(second->usage().local, 12u);
}

TEST_F(SchedulerTest, WhoWaitsForAnothersLoadComputesWhenThatFailsIsLateOrIsCancelled) {
  for (const char* how : {"failed", "late", "cancelled"}) {
    SCOPED_TRACE(how);
    Make(100);
    Sequence* first = Add(1, Request(Tokens(14), 2), {true});
    Add(2, Request(Tokens(14), 2), {true});
    EXPECT_THAT(Step(), IsEmpty());
    ASSERT_EQ(loads_.size(), 1u);
    first->load_deadline = At(10);
    if (how[0] == 'f') scheduler_->OnBlockLoaded(loads_[0].id, 0, false, BlockSource::kRam);
    if (how[0] == 'c') Remove(1);
    EXPECT_EQ(Step(At(10)).size(), 1u) << "one of them computes";
    live_.clear();
  }
}

TEST_F(SchedulerTest, ASequenceWaitsForALoadUntilItsDeadlineAndThenComputes) {
  Make(100);
  Sequence* sequence = Add(1, Request(Tokens(14), 2), {true, true});
  Step(At(0));
  sequence->load_deadline = At(10);
  EXPECT_EQ(scheduler_->NextDeadline(), At(10));
  EXPECT_THAT(Step(At(9)), IsEmpty());
  EXPECT_THAT(Step(At(10)), ElementsAre(Rows(1, 0, 14)));
  EXPECT_EQ(scheduler_->TakeAbandonedLoads().size(), 1u);
  // It comes all the same: nobody minds, and its blocks go back.
  int before = blocks_->num_available();
  // loads_ is of the first step.
  scheduler_->OnBlockLoaded(LoadId{1}, 0, true, BlockSource::kRam);
  scheduler_->OnBlockLoaded(LoadId{1}, 1, false, BlockSource::kRam);
  EXPECT_EQ(blocks_->num_available(), before + 2);
  EXPECT_EQ(sequence->usage().computed, 14u);
  Check();
}

// R29, R31
TEST_F(SchedulerTest, AHoleIsComputedAndWhatArrivedBehindItIsUsed) {
  Make(100);
  Sequence* sequence = Add(1, Request(Tokens(17), 2), {true, true, true, true});
  Step();
  LoadId load = loads_[0].id;
  scheduler_->OnBlockLoaded(load, 0, true, BlockSource::kRam);
  scheduler_->OnBlockLoaded(load, 1, false, BlockSource::kRam);
  scheduler_->OnBlockLoaded(load, 2, true, BlockSource::kRam);
  scheduler_->OnBlockLoaded(load, 3, false, BlockSource::kRam);
  EXPECT_EQ(blocks_->num_indexed(), 1) << "a block is indexed after its ancestors";
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 4, 4)));
  EXPECT_EQ(blocks_->num_indexed(), 3);
  EXPECT_THAT(Step(), ElementsAre(Rows(1, 12, 5)));
  EXPECT_EQ(sequence->usage().ram, 8u);
  EXPECT_EQ(sequence->usage().computed, 9u);
}

TEST_F(SchedulerTest, ABlockOfThisPoolReplacesOneThatIsStillLoading) {
  Make(100);
  Sequence* slow = Add(1, Request(Tokens(10), 2), {true, true});
  Step();
  LoadId load = loads_[0].id;
  Add(2, Request(Tokens(10), 2));
  EXPECT_THAT(Step(), ElementsAre(Rows(2, 0, 10)));
  EXPECT_THAT(Step(), ElementsAre(Rows(2, 10, 1), Rows(1, 8, 2)));
  EXPECT_EQ(slow->usage().local, 8u);
  scheduler_->OnBlockLoaded(load, 0, true, BlockSource::kRam);
  scheduler_->OnBlockLoaded(load, 1, true, BlockSource::kRam);
  EXPECT_EQ(slow->usage().ram, 0u);
  Check();
}

TEST_F(SchedulerTest, WhoWaitsForTheStoresAnswerIsOvertakenAndThenStartsWithoutIt) {
  Make(100);
  Sequence* asking = Add(1, Request(Tokens(6), 3));
  asking->lookup = {.pending = true, .deadline = At(50), .held = {}};
  Add(2, Request(Tokens(6, 100), 3));
  EXPECT_THAT(Step(At(0)), ElementsAre(Rows(2, 0, 6)));
  EXPECT_EQ(scheduler_->NextDeadline(), At(50));
  EXPECT_THAT(Step(At(50)), ElementsAre(Rows(2, 6, 1), Rows(1, 0, 6)));
  EXPECT_EQ(scheduler_->NextDeadline(), TimePoint::max());
}

// An engine that slept until a time that has passed would not sleep at all.
TEST_F(SchedulerTest, ADeadlineThatHasPassedIsNotTheNextOne) {
  Make(100, {.max_num_seqs = 1});
  Sequence* loading = Add(1, Request(Tokens(14), 2), {true, true});
  Step(At(0));
  loading->load_deadline = At(10);
  loading->paused = true;
  Add(2, Request(Tokens(6, 100), 3))->lookup = {.pending = true, .deadline = At(12), .held = {}};
  Step(At(10));
  EXPECT_EQ(scheduler_->NextDeadline(), At(12));
  Step(At(12));
  EXPECT_EQ(scheduler_->NextDeadline(), TimePoint::max());
}

TEST_F(SchedulerTest, LoadsTakeNoMoreBlocksThanTheirShare) {
  Make(100, {.max_loading_blocks = 3});
  Add(1, Request(Tokens(9), 2), {true, true});
  Add(2, Request(Tokens(18, 100), 2), std::vector<bool>(4, true));
  EXPECT_THAT(Step(), IsEmpty());
  ASSERT_EQ(loads_.size(), 2u);
  EXPECT_EQ(loads_[0].entries.size(), 2u);
  EXPECT_EQ(loads_[1].entries.size(), 1u);
}

TEST_F(SchedulerTest, AnUncachedRequestReadsAndPublishesNothing) {
  Make(100);
  Add(1, Request(Tokens(12), 1));
  Step();
  int indexed = blocks_->num_indexed();
  GenerationRequest request = Request(Tokens(12), 2);
  request.cache.scope = CacheScope::None();
  Add(2, request);
  EXPECT_THAT(Step(), ElementsAre(Rows(2, 0, 12)));
  EXPECT_EQ(blocks_->num_indexed(), indexed);
}

TEST_F(SchedulerTest, GeneratedBlocksArePublishedToo) {
  Make(100);
  Add(1, Request(Tokens(6), 8));
  while (!live_.empty()) Step();
  EXPECT_EQ(blocks_->num_indexed(), 3);  // 13 tokens have KV
}

}  // namespace
}  // namespace pagoda::worker
