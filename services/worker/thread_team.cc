#include "services/worker/thread_team.h"

#include <immintrin.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "kernels/base/isa.h"

namespace pagoda::worker {
namespace {

constexpr std::chrono::microseconds kMaxSpin{20};
constexpr int kPausesPerClockRead = 16;

// Returns when `word` no longer holds `old`.
void WaitWhile(const std::atomic<uint32_t>& word, uint32_t old) {
  const auto give_up = std::chrono::steady_clock::now() + kMaxSpin;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (word.load(std::memory_order_acquire) != old) return;
      _mm_pause();
    }
  } while (std::chrono::steady_clock::now() < give_up);
  word.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadTeam::ThreadTeam(int threads) : size_(std::clamp(threads, 1, kMaxTeamThreads)) {
  for (int thread = 1; thread < size_; ++thread) {
    threads_.emplace_back([this, thread] { Work(thread); });
    pthread_setname_np(threads_.back().native_handle(), "compute");
  }
}

ThreadTeam::~ThreadTeam() {
  stop_ = true;
  jobs_.fetch_add(1, std::memory_order_release);
  jobs_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::RunErased(Call call, void* job) {
  call_ = call;
  job_ = job;
  jobs_.fetch_add(1, std::memory_order_release);
  if (size_ > 1) jobs_.notify_all();
  kernels::SetFloatMode();
  call(job, 0);
  Barrier();
}

void ThreadTeam::Work(int thread) {
  kernels::SetFloatMode();
  for (uint32_t seen = 0;; ++seen) {
    WaitWhile(jobs_, seen);
    if (stop_) return;
    call_(job_, thread);
    Barrier();
  }
}

void ThreadTeam::Barrier() {
  if (size_ == 1) return;
  const uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(size_)) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    generation_.notify_all();
  } else {
    WaitWhile(generation_, generation);
  }
}

}  // namespace pagoda::worker
