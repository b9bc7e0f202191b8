// Everything that comes into the engine thread, behind one condition variable.
//
// It is bounded by what may exist at all: requests by the engine's admission, cancels by live
// requests (an id is kept once), transfer events by the blocks that may be LOADING and the lookups
// of live requests. So nothing is ever refused here, and a finished transfer cannot be lost.
//
// Concurrency: the Push methods and Wake from any thread; Take on the engine thread.
#ifndef PAGODA_SERVICES_WORKER_ENGINE_INBOX_H_
#define PAGODA_SERVICES_WORKER_ENGINE_INBOX_H_

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "services/worker/generation_request.h"
#include "services/worker/sequence.h"
#include "services/worker/transfer_event.h"

namespace pagoda::worker {

struct NewRequest {
  std::unique_ptr<Sequence> sequence;
  std::shared_ptr<TokenSink> sink;
  TimePoint submitted;
};

class EngineInbox {
 public:
  struct Input {
    std::vector<NewRequest> requests;
    std::set<SequenceId> cancels;
    std::vector<TransferEvent> transfers;
    bool empty() const { return requests.empty() && cancels.empty() && transfers.empty(); }
  };

  void PushRequest(NewRequest request) {
    MutexLock lock(mutex_);
    input_.requests.push_back(std::move(request));
    changed_.Signal();
  }
  void PushCancel(SequenceId id) {
    MutexLock lock(mutex_);
    input_.cancels.insert(id);
    changed_.Signal();
  }
  void PushTransfer(TransferEvent event) {
    MutexLock lock(mutex_);
    input_.transfers.push_back(std::move(event));
    changed_.Signal();
  }
  // Take returns once, also with nothing.
  void Wake() {
    MutexLock lock(mutex_);
    woken_ = true;
    changed_.Signal();
  }

  // What came since the last call; waits for something until `deadline` (a past one: does not
  // wait).
  Input Take(TimePoint deadline) {
    MutexLock lock(mutex_);
    while (input_.empty() && !woken_) {
      if (!changed_.WaitUntil(mutex_, deadline)) break;
    }
    woken_ = false;
    return std::exchange(input_, {});
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  Input input_ ABSL_GUARDED_BY(mutex_);
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_ENGINE_INBOX_H_
