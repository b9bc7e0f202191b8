#include "common/placement/placement.h"

#include <map>
#include <numeric>
#include <random>

#include "gtest/gtest.h"

namespace pagoda::placement {
namespace {

constexpr uint32_t kBlock = 32;

Space SpaceOf(uint8_t byte) {
  Space space;
  space.bytes[0] = byte;
  return space;
}

WorkerInfo Info(uint64_t id, std::string name) {
  return {.instance_id = id, .name = std::move(name), .space = SpaceOf(1), .max_num_seqs = 64};
}

// A prompt of whole blocks with the fingerprints first, first + 1, ... and one token more.
PlacementRequest Prompt(uint64_t first, uint32_t blocks) {
  PlacementRequest request;
  request.prompt_tokens = blocks * kBlock + 1;
  std::vector<uint64_t> keys(blocks);
  std::iota(keys.begin(), keys.end(), first);
  request.prefixes.push_back({SpaceOf(1), kBlock, keys});
  return request;
}

class PlacementTest : public testing::Test {
 protected:
  Placement Make(std::string_view policy) { return Placement(*MakePolicy(policy, 3), &clock_); }
  ManualClock clock_;
};

TEST_F(PlacementTest, NoWorkerIsUnavailableAndAnUnknownPinIsTheClientsFault) {
  Placement placement = Make("predicted");
  EXPECT_EQ(placement.Place(Prompt(1, 1)).status().code(), absl::StatusCode::kUnavailable);
  placement.AddWorker(Info(1, "a"));
  PlacementRequest pinned = Prompt(1, 1);
  pinned.pinned = "zz";
  Status status = placement.Place(pinned).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("zz"), absl::string_view::npos);
}

TEST_F(PlacementTest, APinIsObeyedAgainstThePolicy) {
  Placement placement = Make("predicted");
  placement.AddWorker(Info(1, "a"));
  placement.AddWorker(Info(2, "b"));
  for (const char* name : {"a", "b", "b", "b"}) {
    PlacementRequest request = Prompt(1, 4);
    request.pinned = name;
    auto placed = placement.Place(request);
    ASSERT_TRUE(placed.ok());
    EXPECT_EQ(placed->decision.worker, name);
    EXPECT_EQ(placed->decision.reason, Reason::kPinned);
  }
}

TEST_F(PlacementTest, TheSamePrefixGoesBackToItsWorker) {
  Placement placement = Make("predicted");
  for (uint64_t id = 1; id <= 8; ++id) placement.AddWorker(Info(id, "w" + std::to_string(id)));
  auto first = placement.Place(Prompt(100, 10));
  ASSERT_TRUE(first.ok());
  placement.OnFirstToken(first->ticket);
  placement.OnEnd(first->ticket);
  for (int i = 0; i < 20; ++i) {
    auto again = placement.Place(Prompt(100, 10));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->instance_id, first->instance_id);
    EXPECT_EQ(again->decision.known_tokens, 10 * kBlock);
    EXPECT_EQ(again->decision.reason, Reason::kPrefix);
    placement.OnFirstToken(again->ticket);
    placement.OnEnd(again->ticket);
  }
}

TEST_F(PlacementTest, OwnRequestsCountAtOnce) {  // R53
  Placement placement = Make("predicted");
  for (uint64_t id = 1; id <= 4; ++id) placement.AddWorker(Info(id, "w" + std::to_string(id)));
  std::map<uint64_t, int> placed_on;
  // Different prompts in one instant, before any report or token.
  for (uint64_t i = 0; i < 40; ++i) {
    ++placed_on[placement.Place(Prompt(1000 * i, 10))->instance_id];
    ASSERT_TRUE(placement.CheckIntegrity().ok());
  }
  for (auto [id, count] : placed_on) EXPECT_EQ(count, 10) << id;
}

TEST_F(PlacementTest, APopularPrefixDoesNotCollapseOntoOneWorker) {  // R53, R61
  Placement placement = Make("predicted");
  for (uint64_t id = 1; id <= 4; ++id) {
    WorkerInfo info = Info(id, "w" + std::to_string(id));
    info.max_num_seqs = 8;
    placement.AddWorker(info);
  }
  std::map<uint64_t, int> placed_on;
  for (int i = 0; i < 32; ++i) {
    auto placed = placement.Place(Prompt(7, 20));
    placement.OnFirstToken(placed->ticket);  // all of them go on decoding
    ++placed_on[placed->instance_id];
  }
  // The prefix saves 0.64 s; each request over the 8 seats waits 0.25 s longer than the one before.
  EXPECT_EQ(placed_on.size(), 4u);
  for (auto [id, count] : placed_on) EXPECT_LE(count, 8 + 3) << id;
}

TEST_F(PlacementTest, KeysOfAnotherSpaceAreNotKnown) {
  Placement placement = Make("predicted");
  WorkerInfo other = Info(1, "a");
  other.space = SpaceOf(2);
  placement.AddWorker(other);
  placement.Place(Prompt(1, 4)).value();
  EXPECT_EQ(placement.Place(Prompt(1, 4))->decision.known_tokens, 0u);
}

TEST_F(PlacementTest, TheLastTokenIsNeverCountedAsKnown) {
  Placement placement = Make("predicted");
  placement.AddWorker(Info(1, "a"));
  PlacementRequest request = Prompt(1, 4);
  request.prompt_tokens = 4 * kBlock;
  placement.Place(request).value();
  EXPECT_EQ(placement.Place(request)->decision.known_tokens, 3 * kBlock);
}

TEST_F(PlacementTest, DrainingAndExcludedWorkersGetNothing) {
  Placement placement = Make("least_loaded");
  for (uint64_t id = 1; id <= 3; ++id) placement.AddWorker(Info(id, "w" + std::to_string(id)));
  placement.SetAccepting(1, false);
  PlacementRequest request = Prompt(1, 1);
  request.excluded = {2};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(placement.Place(request)->instance_id, 3u);
  placement.RemoveWorker(3);
  EXPECT_EQ(placement.Place(request).status().code(), absl::StatusCode::kUnavailable);
  placement.SetAccepting(1, true);
  EXPECT_EQ(placement.Place(request)->instance_id, 1u);
}

TEST_F(PlacementTest, ARemovedWorkersTicketsAreHarmless) {
  Placement placement = Make("round_robin");
  placement.AddWorker(Info(1, "a"));
  auto placed = placement.Place(Prompt(1, 1));
  placement.RemoveWorker(1);
  placement.OnFirstToken(placed->ticket);
  placement.OnEnd(placed->ticket);
  EXPECT_TRUE(placement.CheckIntegrity().ok());
}

TEST_F(PlacementTest, BooksAddUpUnderRandomUse) {
  uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Placement placement = Make("predicted");
  std::vector<uint64_t> tickets;
  for (int i = 0; i < 3000; ++i) {
    uint64_t id = 1 + random() % 5;
    switch (random() % 8) {
      case 0:
        placement.AddWorker(Info(id, "w" + std::to_string(id)));
        break;
      case 1:
        if (random() % 4 == 0) placement.RemoveWorker(id);
        break;
      case 2:
        placement.SetAccepting(id, random() % 2 == 0);
        break;
      case 3:
        if (!tickets.empty()) placement.OnFirstToken(tickets[random() % tickets.size()]);
        break;
      case 4:
      case 5:
        if (!tickets.empty()) placement.OnEnd(tickets[random() % tickets.size()]);
        break;
      default:
        if (auto placed = placement.Place(Prompt(random() % 50, random() % 20)); placed.ok()) {
          tickets.push_back(placed->ticket);
        }
    }
    clock_.Advance(std::chrono::milliseconds(random() % 50));
    ASSERT_EQ(placement.CheckIntegrity(), absl::OkStatus());
  }
}

TEST(MakePolicyTest, AnUnknownPolicyIsRefusedWithTheChoices) {
  Status status = MakePolicy("sticky", 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("predicted"), absl::string_view::npos);
}

}  // namespace
}  // namespace pagoda::placement
