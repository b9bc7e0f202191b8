// A fixed team of threads that run one job together, in lockstep: ranges of work and barriers.
//
// The caller of Run is thread 0; the others wait between jobs. Waiting spins for at most 20
// microseconds (a barrier inside a step takes less) and then sleeps in the kernel, so that an idle
// worker uses no CPU and a team that shares its cores with others does not burn them. It is not a
// task queue: no job is queued, none may start another.
//
// Concurrency: one thread at a time calls Run; Barrier is called by every thread of the running
// job.
#ifndef PAGODA_SERVICES_WORKER_THREAD_TEAM_H_
#define PAGODA_SERVICES_WORKER_THREAD_TEAM_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace pagoda::worker {

// [begin, end)
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

// Part `index` of `parts` nearly equal, consecutive parts of [0, total).
inline Range PartOf(int64_t total, int parts, int index) {
  return {total * index / parts, total * (index + 1) / parts};
}

// More threads than this never help a memory-bound step on the machines that Pagoda serves on.
inline constexpr int kMaxTeamThreads = 256;

class ThreadTeam {
 public:
  // Clamped to [1, kMaxTeamThreads].
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }

  // Calls job(thread) on every thread of the team, thread in [0, size()), with the floating-point
  // mode that the kernels need; returns when all have returned. The job must not throw.
  template <typename Job>
  void Run(Job&& job) {
    using Plain = std::remove_reference_t<Job>;
    RunErased([](void* erased, int thread) { (*static_cast<Plain*>(erased))(thread); },
              const_cast<void*>(static_cast<const void*>(&job)));
  }

  // Waits until every thread of the job has called it as often as this one.
  void Barrier();

 private:
  using Call = void (*)(void* job, int thread);

  void RunErased(Call call, void* job);
  void Work(int thread);

  const int size_;
  // Written before jobs_ is raised, read after it was seen raised.
  Call call_ = nullptr;
  void* job_ = nullptr;
  bool stop_ = false;
  // Each on a cache line of its own: they are written by different threads at different times.
  alignas(64) std::atomic<uint32_t> jobs_{0};        // jobs started
  alignas(64) std::atomic<uint32_t> arrived_{0};     // threads at the current barrier
  alignas(64) std::atomic<uint32_t> generation_{0};  // barriers passed
  std::vector<std::thread> threads_;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_THREAD_TEAM_H_
