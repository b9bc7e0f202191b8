// A BlockStore that passes calls on to another one after a delay, on a thread of its own, in the
// order in which they came. A call whose deadline passes while it waits is answered then; one that
// is called off, a nanosecond after that. So on a ManualClock nothing happens before it is
// advanced, and then everything in one order.
//
// Concurrency: every method may be called from any thread. The destructor fails what waits.
#ifndef PAGODA_COMMON_KV_TESTING_DELAYED_STORE_H_
#define PAGODA_COMMON_KV_TESTING_DELAYED_STORE_H_

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/kv/block_store.h"

namespace pagoda::testing {

class DelayedStore final : public BlockStore {
 public:
  using Delay = std::function<Duration()>;  // of the next call; called under a lock

  DelayedStore(std::shared_ptr<BlockStore> inner, Clock* clock, Delay delay);
  ~DelayedStore() override;

  // For the calls from now on; those that wait already do so no longer than they would from now.
  void SetDelay(Delay delay);

  // Waits until all that is due by the clock has been passed on or answered. Not from a callback.
  void Settle();
  size_t num_waiting() const;

  void FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                   FindCallback done) override;
  void Get(const CallContext& context, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) override;
  void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) override;
  void ReportCorrupt(const CorruptReport& report) override;

 private:
  using OnCancel = std::stop_callback<std::function<void()>>;
  struct Call {
    TimePoint due;
    TimePoint deadline;
    TimePoint cancelled = TimePoint::max();
    std::stop_token cancel;
    std::function<void()> pass;
    std::function<void(const Status&)> fail;
    std::optional<OnCancel> on_cancel;
  };

  void Enter(const CallContext& context, std::function<void()> pass,
             std::function<void(const Status&)> fail);
  TimePoint NextDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();
  // When something is to be done about the call.
  TimePoint TimeOf(const Call& call) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The first of the calls whose time comes next; end() when none waits.
  std::list<std::shared_ptr<Call>>::iterator Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Call> TakeNext();
  void Answer(Call& call);

  const std::shared_ptr<BlockStore> inner_;
  Clock* const clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  Delay delay_ ABSL_GUARDED_BY(mutex_);
  std::list<std::shared_ptr<Call>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool answering_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pagoda::testing

#endif  // PAGODA_COMMON_KV_TESTING_DELAYED_STORE_H_
