// One cell of the matrix: a path is tried with one model in one KV format. It makes what a path
// needs, compares every answer with the right one, and keeps what was wrong.
//
// Concurrency: one thread.
#ifndef PAGODA_TESTS_EXACTNESS_TRIAL_H_
#define PAGODA_TESTS_EXACTNESS_TRIAL_H_

#include <memory>
#include <string>
#include <vector>

#include "common/kv/block_store.h"
#include "services/kvstore/kvstore_server.h"
#include "tests/exactness/subject.h"
#include "tests/exactness/test_worker.h"

namespace pagoda::exactness {

class Trial {
 public:
  // `right`: subject.AnswerByHand(kv). All outlive the trial.
  Trial(const Subject& subject, kernels::KvDtype kv, const std::vector<Answer>& right)
      : subject_(subject), kv_(kv), right_(right) {}

  const Subject& subject() const { return subject_; }
  const Question& question(size_t index) const { return subject_.questions()[index]; }
  const Answer& right(size_t index) const { return right_[index]; }

  std::unique_ptr<TestWorker> NewWorker(TestWorker::Settings settings = {}) const {
    return std::make_unique<TestWorker>(subject_, kv_, std::move(settings));
  }
  ~Trial();

  // A KV store of its own on a loopback port, and a new client of it.
  static std::unique_ptr<kvstore::KvStoreServer> NewStore();
  // With RAM for four blocks only, over a folder that lives as long as the trial: started again, it
  // finds what the last one left there.
  std::unique_ptr<kvstore::KvStoreServer> NewDiskStore();
  static std::shared_ptr<BlockStore> Connect(const kvstore::KvStoreServer& store);

  // Asks a worker one question after another, each alone, and compares; returns their usage.
  std::vector<worker::GenerationUsage> AskEach(TestWorker& worker, const std::vector<size_t>& which,
                                               CacheScope scope);
  // All at once.
  std::vector<worker::GenerationUsage> AskTogether(TestWorker& worker, CacheScope scope);
  // Continues a question after its first `cut` right tokens.
  worker::GenerationUsage Resume(TestWorker& worker, size_t index, size_t cut, CacheScope scope);

  // That the path was really taken, as usage or a counter says it.
  void ExpectTaken(bool taken, const std::string& what);
  // Equality with `what` for both numbers.
  void ExpectTaken(double expected, double actual, const std::string& what);

  const std::vector<std::string>& problems() const { return problems_; }
  // For the table: "ok" and how many rows of logits were compared, or the first kind of problem.
  std::string Verdict() const;

 private:
  void Compare(size_t index, const Answer& answer, size_t from);

  const Subject& subject_;
  const kernels::KvDtype kv_;
  const std::vector<Answer>& right_;
  size_t rows_ = 0;  // compared
  std::vector<std::string> problems_;
  std::string data_dir_;  // empty until there is a store on disk
};

// How many of `tokens` tokens lie in blocks that may be reused: at least the last is computed.
inline uint32_t Reusable(size_t tokens) {
  constexpr size_t kBlock = TestWorker::kBlockTokens;
  return static_cast<uint32_t>((tokens - 1) / kBlock * kBlock);
}

}  // namespace pagoda::exactness

#endif  // PAGODA_TESTS_EXACTNESS_TRIAL_H_
