// A generation's sink for tests: remembers what it was told and waits for the end.
//
// Concurrency: the test's thread beside the generation's; text and ids may be read after the end.
#ifndef PAGODA_SERVICES_ROUTER_TESTING_RECORDING_SINK_H_
#define PAGODA_SERVICES_ROUTER_TESTING_RECORDING_SINK_H_

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bounded_queue.h"
#include "services/router/generation.h"

namespace pagoda::router::testing {

class RecordingSink final : public GenerationSink {
 public:
  struct Result {
    Status status;
    v1::FinishReason finish;
    v1::Usage usage;
  };
  void OnTokens(std::span<const uint32_t> ids, const std::string& text,
                const std::string&) override {
    text_ += text;
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    tokens_ = ids_.size();
  }
  void OnEnd(const Status& status, v1::FinishReason finish, const v1::Usage& usage) override {
    ++ends_;
    results_.TryPush({status, finish, usage});
  }
  std::optional<Result> EndUntil(TimePoint deadline) { return results_.PopUntil(deadline); }
  Result End() {
    auto result = EndUntil(std::chrono::steady_clock::now() + std::chrono::seconds(60));
    if (!result) return {absl::DeadlineExceededError("the test waited 60 s"), {}, {}};
    return *result;
  }
  const std::string& text() const { return text_; }
  const std::vector<uint32_t>& ids() const { return ids_; }
  size_t tokens() const { return tokens_; }  // so far
  int ends() const { return ends_; }

 private:
  std::string text_;
  std::vector<uint32_t> ids_;
  std::atomic<size_t> tokens_ = 0;
  std::atomic<int> ends_ = 0;
  BoundedQueue<Result> results_{10};
};

}  // namespace pagoda::router::testing

#endif  // PAGODA_SERVICES_ROUTER_TESTING_RECORDING_SINK_H_
