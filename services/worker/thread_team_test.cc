#include "services/worker/thread_team.h"

#include <immintrin.h>

#include <vector>

#include "gtest/gtest.h"

namespace pagoda::worker {
namespace {

TEST(ThreadTeamTest, EveryThreadRunsEachJobOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadTeam team(threads);
    std::vector<int> runs(threads);
    for (int job = 0; job < 100; ++job) team.Run([&](int thread) { ++runs[thread]; });
    EXPECT_EQ(runs, std::vector<int>(threads, 100));
  }
}

TEST(ThreadTeamTest, ABarrierShowsEveryThreadWhatTheOthersDidBefore) {
  constexpr int kThreads = 3, kRounds = 500;
  ThreadTeam team(kThreads);
  std::vector<int> written(kThreads);
  std::vector<int> mistakes(kThreads);
  team.Run([&](int thread) {
    for (int round = 1; round <= kRounds; ++round) {
      written[thread] = round;
      team.Barrier();
      for (int other : written) mistakes[thread] += other != round;
      team.Barrier();
    }
  });
  EXPECT_EQ(mistakes, std::vector<int>(kThreads, 0));
}

TEST(ThreadTeamTest, EveryThreadHasTheKernelsFloatMode) {
  ThreadTeam team(2);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before |
             0x8040);  // flush to zero and denormals are zero, as some library may leave it
  std::vector<unsigned> modes(2);
  team.Run([&](int thread) { modes[thread] = _mm_getcsr() & 0xFFC0; });
  _mm_setcsr(before);
  EXPECT_EQ(modes, std::vector<unsigned>(2, 0x1F80));
}

TEST(ThreadTeamTest, PartsCoverTheWholeInOrder) {
  for (int64_t total : {0, 1, 2, 7, 1000}) {
    for (int parts : {1, 2, 3, 16}) {
      int64_t next = 0;
      for (int i = 0; i < parts; ++i) {
        const Range range = PartOf(total, parts, i);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.end - range.begin, total / parts + 1);
        next = range.end;
      }
      EXPECT_EQ(next, total);
    }
  }
}

}  // namespace
}  // namespace pagoda::worker
