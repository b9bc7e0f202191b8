// Requests that workers died of: remembered, so that one poisonous request cannot take the whole
// cluster down, worker after worker.
//
// A worker is down when its reports end without a drain, or when it is frozen or stuck. Every
// request that this router had in flight there becomes a suspect: with 2 points if it was alone,
// with 1 if it had company, once for each worker. A request with kGuilty points is refused:
//   - one that was alone on either of two workers that went down: it killed 2
//   - one that had company each time: only after 3, which is as often as a request can be resumed,
//     so that company costs a bystander nothing that it still had
// A request that finishes has proved that it kills nothing: its points are forgotten. Points are
// forgotten after kMemory.
//
// A stream that breaks is the first sign of a death, and the end of the reports may come later: a
// broken attempt counts at once, and is taken back when the worker goes on reporting (it was the
// connection that broke).
//
// Concurrency: every method may be called from any thread.
#ifndef PAGODA_SERVICES_ROUTER_KILLER_TABLE_H_
#define PAGODA_SERVICES_ROUTER_KILLER_TABLE_H_

#include <cstdint>
#include <map>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "services/router/request_plan.h"

namespace pagoda::router {

// Prompt ids, limits and sampling parameters but the seed, which may be new at each try.
enum class RequestFingerprint : uint64_t {};
RequestFingerprint FingerprintOf(const RequestPlan& plan);

class KillerTable {
 public:
  static constexpr int kGuilty = 3;
  static constexpr Duration kMemory = std::chrono::minutes(10);
  // About 200 bytes each; far more than the requests that 1,024 workers could have died of.
  static constexpr size_t kMaxSuspects = 16384;
  // The first report after a break may have been under way before it.
  static constexpr int kReportsOfALivingWorker = 2;

  explicit KillerTable(const Clock* clock) : clock_(clock) {}

  // An attempt's life on a worker: Begin, then End or OnBroken.
  void Begin(uint64_t instance_id, RequestFingerprint request);
  // The worker ended it, or this router did.
  void End(uint64_t instance_id, RequestFingerprint request);
  // It ended without a word of the worker's.
  void OnBroken(uint64_t instance_id, RequestFingerprint request);

  // Whatever is in flight there is suspect, also when it is well again.
  void OnWorkerHangs(uint64_t instance_id);
  // Likewise, and it will not report again.
  void OnWorkerGone(uint64_t instance_id);
  void OnReport(uint64_t instance_id);
  // It leaves as it should: nobody's fault.
  void OnWorkerLeft(uint64_t instance_id);

  void OnFinished(RequestFingerprint request);

  bool Refused(RequestFingerprint request);

 private:
  struct Worker {
    std::map<RequestFingerprint, int> running;  // attempts
    std::map<RequestFingerprint, int> broken;   // reports since
    bool gone = false;
  };
  struct Suspect {
    std::map<uint64_t, int> points;  // by instance
    TimePoint last{};
  };

  void AccuseRunning(uint64_t instance_id, const Worker& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Accuse(uint64_t instance_id, const Worker& worker, RequestFingerprint request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Withdraw(uint64_t instance_id, RequestFingerprint request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndOne(Worker& worker, RequestFingerprint request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseIfIdle(uint64_t instance_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  Mutex mutex_;
  std::map<uint64_t, Worker> workers_ ABSL_GUARDED_BY(mutex_);  // with attempts
  std::map<RequestFingerprint, Suspect> suspects_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_KILLER_TABLE_H_
