// A BlockStore that a test can make slow, dead or failing: calls wait at its gate, in order, until
// the test lets them through, fails them, or their caller calls them off. Deadlines are dropped:
// the tests' clocks are not the inner store's.
//
// Concurrency: every method from any thread.
#ifndef PAGODA_SERVICES_WORKER_TESTING_GATED_STORE_H_
#define PAGODA_SERVICES_WORKER_TESTING_GATED_STORE_H_

#include <functional>
#include <list>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/kv/block_store.h"

namespace pagoda::worker::testing {

class GatedStore final : public BlockStore {
 public:
  explicit GatedStore(BlockStore* inner) : inner_(inner) {}

  // Closed: calls wait. Open: they go through at once.
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  void Open() {
    {
      MutexLock lock(mutex_);
      closed_ = false;
    }
    while (auto call = TakeFirst()) call->pass();
  }
  // Fails everything that waits.
  void FailWaiting(const Status& status) {
    while (auto call = TakeFirst()) call->fail(status);
  }
  size_t num_waiting() {
    MutexLock lock(mutex_);
    return waiting_.size();
  }
  // Waits until this many calls wait.
  void WaitForCalls(size_t count) {
    MutexLock lock(mutex_);
    while (waiting_.size() < count) changed_.Wait(mutex_);
  }

  void FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                   FindCallback done) override {
    size_t count = refs.size();
    Enter(
        context, [=, this] { inner_->FindMissing(Patient(context), refs, done); },
        [=](const Status& status) { done(FailedFind(status, count)); });
  }
  void Get(const CallContext& context, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) override {
    size_t count = refs.size();
    Enter(
        context, [=, this] { inner_->Get(Patient(context), refs, sink); },
        [=](const Status& status) { FailGet(status, count, *sink); });
  }
  void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) override {
    auto shared = std::make_shared<std::vector<PutBlock>>(std::move(blocks));
    Enter(
        context, [=, this] { inner_->Put(Patient(context), std::move(*shared), done); },
        [=](const Status& status) { done(FailedPut(status, shared->size())); });
  }
  void ReportCorrupt(const CorruptReport& report) override { inner_->ReportCorrupt(report); }

 private:
  struct Call {
    std::function<void()> pass;
    std::function<void(Status)> fail;
    std::unique_ptr<std::stop_callback<std::function<void()>>> on_cancel;
  };

  static CallContext Patient(CallContext context) {
    context.deadline = TimePoint::max();
    return context;
  }

  void Enter(const CallContext& context, std::function<void()> pass,
             std::function<void(Status)> fail) {
    auto call = std::make_shared<Call>();
    call->pass = std::move(pass);
    call->fail = std::move(fail);
    bool closed;
    {
      MutexLock lock(mutex_);
      closed = closed_;
      if (closed) waiting_.push_back(call);
      changed_.SignalAll();
    }
    if (!closed) return call->pass();
    std::weak_ptr<Call> weak = call;
    call->on_cancel = std::make_unique<std::stop_callback<std::function<void()>>>(
        context.cancel, std::function<void()>([this, weak] {
          if (auto call = weak.lock(); call && Remove(call)) {
            call->fail(absl::CancelledError("called off"));
          }
        }));
  }

  bool Remove(const std::shared_ptr<Call>& call) {
    MutexLock lock(mutex_);
    return waiting_.remove(call) > 0;
  }
  std::shared_ptr<Call> TakeFirst() {
    MutexLock lock(mutex_);
    if (waiting_.empty()) return nullptr;
    auto call = waiting_.front();
    waiting_.pop_front();
    return call;
  }

  BlockStore* const inner_;
  Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<std::shared_ptr<Call>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pagoda::worker::testing

#endif  // PAGODA_SERVICES_WORKER_TESTING_GATED_STORE_H_
