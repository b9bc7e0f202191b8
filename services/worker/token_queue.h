// A TokenSink that keeps tokens in order until one reader takes them: what lies between the engine
// and a stream to a client.
//
// Concurrency: the engine thread writes, one other thread calls Take; `notify` runs on the engine
// thread and must not block, `wake` on the reader's.
#ifndef PAGODA_SERVICES_WORKER_TOKEN_QUEUE_H_
#define PAGODA_SERVICES_WORKER_TOKEN_QUEUE_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "services/worker/generation_request.h"

namespace pagoda::worker {

class TokenQueue final : public TokenSink {
 public:
  // Tokens that wait for a slow reader: half a minute at 32 tokens a second, which is when the
  // router gives a client up. Then the sequence pauses.
  static constexpr size_t kMaxTokens = 1024;

  struct Batch {
    std::vector<TokenId> ids;
    std::optional<GenerationResult> result;  // set once, with the last tokens
    bool empty() const { return ids.empty() && !result; }
  };

  // `notify`: there is something to take, and was nothing before. `wake`: there is room again, and
  // was none (Engine::Wake).
  TokenQueue(std::function<void()> notify, std::function<void()> wake,
             size_t max_tokens = kMaxTokens)
      : notify_(std::move(notify)), wake_(std::move(wake)), max_tokens_(max_tokens) {}

  bool HasRoom() override {
    MutexLock lock(mutex_);
    return batch_.ids.size() < max_tokens_;
  }
  void OnToken(TokenId token) override {
    bool was_empty;
    {
      MutexLock lock(mutex_);
      was_empty = batch_.empty();
      batch_.ids.push_back(token);
    }
    if (was_empty) notify_();
  }
  void OnFinish(const GenerationResult& result) override {
    bool was_empty;
    {
      MutexLock lock(mutex_);
      was_empty = batch_.empty();
      batch_.result = result;
    }
    if (was_empty) notify_();
  }

  // All that is there; empty when there is nothing.
  Batch Take() {
    Batch batch;
    {
      MutexLock lock(mutex_);
      batch = std::exchange(batch_, {});
    }
    if (batch.ids.size() >= max_tokens_) wake_();
    return batch;
  }

 private:
  const std::function<void()> notify_;
  const std::function<void()> wake_;
  const size_t max_tokens_;
  Mutex mutex_;
  Batch batch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_TOKEN_QUEUE_H_
