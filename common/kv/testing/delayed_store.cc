#include "common/kv/testing/delayed_store.h"

#include <algorithm>
#include <utility>

namespace pagoda::testing {

DelayedStore::DelayedStore(std::shared_ptr<BlockStore> inner, Clock* clock, Delay delay)
    : inner_(std::move(inner)), clock_(clock), delay_(std::move(delay)) {
  thread_ = std::thread([this] { Run(); });
}

DelayedStore::~DelayedStore() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void DelayedStore::SetDelay(Delay delay) {
  MutexLock lock(mutex_);
  delay_ = std::move(delay);
  std::list<std::shared_ptr<Call>> before = std::exchange(waiting_, {});
  for (std::shared_ptr<Call>& call : before) {
    call->due = std::min(call->due, NextDue());
    waiting_.push_back(std::move(call));
  }
  changed_.SignalAll();
}

size_t DelayedStore::num_waiting() const {
  MutexLock lock(mutex_);
  return waiting_.size();
}

void DelayedStore::Settle() {
  MutexLock lock(mutex_);
  changed_.SignalAll();
  while (true) {
    auto next = Next();
    bool due = next != waiting_.end() && TimeOf(**next) <= clock_->Now();
    if (!answering_ && !due) return;
    changed_.Wait(mutex_);
  }
}

void DelayedStore::FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                               FindCallback done) {
  size_t count = refs.size();
  Enter(
      context, [=, this] { inner_->FindMissing(context, refs, done); },
      [=](const Status& status) { done(FailedFind(status, count)); });
}

void DelayedStore::Get(const CallContext& context, std::vector<BlockRef> refs,
                       std::shared_ptr<BlockSink> sink) {
  size_t count = refs.size();
  Enter(
      context, [=, this] { inner_->Get(context, refs, sink); },
      [=](const Status& status) { FailGet(status, count, *sink); });
}

void DelayedStore::Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) {
  // std::function copies its closure; the blocks are moved out by the one call.
  auto shared = std::make_shared<std::vector<PutBlock>>(std::move(blocks));
  Enter(
      context, [=, this] { inner_->Put(context, std::move(*shared), done); },
      [=](const Status& status) { done(FailedPut(status, shared->size())); });
}

void DelayedStore::ReportCorrupt(const CorruptReport& report) {
  Enter(
      {}, [=, this] { inner_->ReportCorrupt(report); }, [](const Status&) {});
}

void DelayedStore::Enter(const CallContext& context, std::function<void()> pass,
                         std::function<void(const Status&)> fail) {
  auto call = std::make_shared<Call>();
  call->deadline = context.deadline;
  call->cancel = context.cancel;
  call->pass = std::move(pass);
  call->fail = std::move(fail);
  // Before the thread can see the call: it resets this.
  call->on_cancel.emplace(context.cancel, [this, call = call.get()] {
    MutexLock lock(mutex_);
    call->cancelled = clock_->Now() + Duration(1);
    changed_.SignalAll();
  });
  MutexLock lock(mutex_);
  call->due = NextDue();
  waiting_.push_back(std::move(call));
  changed_.SignalAll();
}

TimePoint DelayedStore::NextDue() {
  TimePoint due = clock_->Now() + delay_();
  return waiting_.empty() ? due : std::max(due, waiting_.back()->due);
}

TimePoint DelayedStore::TimeOf(const Call& call) const {
  return stopping_ ? TimePoint::min() : std::min({call.due, call.deadline, call.cancelled});
}

std::list<std::shared_ptr<DelayedStore::Call>>::iterator DelayedStore::Next() {
  auto next = waiting_.begin();
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    if (TimeOf(**it) < TimeOf(**next)) next = it;
  }
  return next;
}

void DelayedStore::Run() {
  while (std::shared_ptr<Call> call = TakeNext()) {
    Answer(*call);
    call.reset();
    MutexLock lock(mutex_);
    answering_ = false;
    changed_.SignalAll();
  }
}

std::shared_ptr<DelayedStore::Call> DelayedStore::TakeNext() {
  MutexLock lock(mutex_);
  while (true) {
    auto next = Next();
    if (next == waiting_.end()) {
      if (stopping_) return nullptr;
      changed_.Wait(mutex_);
      continue;
    }
    TimePoint now = clock_->Now();
    TimePoint time = TimeOf(**next);
    if (time <= now) {
      std::shared_ptr<Call> call = *next;
      waiting_.erase(next);
      answering_ = true;
      return call;
    }
    // Whoever advances a ManualClock says so through Settle; meanwhile a look now and then.
    changed_.WaitUntil(
        mutex_, SystemClock::Get()->Now() + std::min<Duration>(time - now, std::chrono::hours(1)));
  }
}

void DelayedStore::Answer(Call& call) {
  call.on_cancel.reset();
  bool stopping;
  {
    MutexLock lock(mutex_);
    stopping = stopping_;
  }
  if (stopping || call.cancel.stop_requested()) {
    return call.fail(absl::CancelledError("called off while it waited"));
  }
  if (call.deadline <= call.due) {
    return call.fail(absl::DeadlineExceededError("the deadline passed while it waited"));
  }
  call.pass();
}

}  // namespace pagoda::testing
