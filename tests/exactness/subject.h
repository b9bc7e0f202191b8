// A model that the suite runs, loaded once, and the questions that it is asked.
//
// Concurrency: immutable once made.
#ifndef PAGODA_TESTS_EXACTNESS_SUBJECT_H_
#define PAGODA_TESTS_EXACTNESS_SUBJECT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/model/gguf.h"
#include "common/model/model_config.h"
#include "common/model/testing/tiny_model.h"
#include "kernels/kv/kv_slice.h"
#include "services/worker/model_weights.h"
#include "tests/exactness/answer.h"

namespace pagoda::exactness {

class Subject {
 public:
  // Prompts of 3 to 301 tokens: within a block, around the borders of blocks (32) and attention
  // splits (256); each is asked greedily and sampled, and some answers cross a border.
  static std::unique_ptr<Subject> Tiny(const model::testing::TinyModelOptions& options);

  // The file that PAGODA_TEST_MODEL names; null when it names none. Fewer and shorter questions.
  static std::unique_ptr<Subject> SmolLm2();

  // The answers of each question, computed by hand on a lone model runner: whole prompts, one
  // thread, no engine, no scheduler, no cache. What everything else is compared with.
  std::vector<Answer> AnswerByHand(kernels::KvDtype kv) const;

  const model::ModelConfig& config() const { return config_; }
  const worker::ModelWeights& weights() const { return weights_; }
  int threads() const { return threads_; }  // of a worker whose path says nothing else

  const std::vector<Question>& questions() const { return questions_; }
  // Indices into questions(): for paths that compute each token alone or many times over (with a
  // tiny model all), and for the scalar reference, which is slow.
  const std::vector<size_t>& some() const { return some_; }
  const std::vector<size_t>& fewest() const { return fewest_; }
  std::vector<size_t> all() const;
  // A pool in which not all questions that are admitted together can be answered without taking
  // blocks from one another.
  int32_t tight_pool_blocks() const { return tight_pool_blocks_; }

 private:
  Subject(std::string bytes, const std::string& path, int threads);
  Question NewQuestion(int32_t prompt_tokens, uint32_t max_tokens) const;
  void AskGreedy(Question question) { questions_.push_back(std::move(question)); }
  void AskSampled(Question question);
  void AskBoth(const Question& question);

  const std::string bytes_;  // of a tiny model; the file refers to them
  const model::GgufFile gguf_;
  const model::ModelConfig config_;
  const int threads_;
  worker::ModelWeights weights_;
  std::vector<Question> questions_;
  std::vector<size_t> some_;
  std::vector<size_t> fewest_;
  int32_t tight_pool_blocks_ = 0;
};

}  // namespace pagoda::exactness

#endif  // PAGODA_TESTS_EXACTNESS_SUBJECT_H_
