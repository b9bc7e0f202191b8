#include "tests/exactness/subject.h"

#include <cstdlib>
#include <numeric>
#include <utility>

#include "services/worker/testing/runner_harness.h"
#include "services/worker/thread_team.h"

namespace pagoda::exactness {
namespace {

using worker::testing::RunnerHarness;
using worker::testing::SomeTokens;

Answer AskByHand(RunnerHarness& harness, const Question& question) {
  RunnerHarness::Sequence sequence = harness.NewSequence(
      static_cast<int32_t>(question.prompt.size()) + static_cast<int32_t>(question.max_tokens));
  Answer answer;
  std::vector<TokenId> next = question.prompt;
  while (answer.tokens.size() < question.max_tokens) {
    harness.Plan(sequence, next, false, question.sampling);
    next = {harness.Step()[0].token};
    answer.tokens.push_back(next[0]);
    const auto logits = harness.runner().logits(0);
    answer.logits.emplace_back(logits.begin(), logits.end());
  }
  harness.ReleaseAll();
  return answer;
}

}  // namespace

Subject::Subject(std::string bytes, const std::string& path, int threads)
    : bytes_(std::move(bytes)),
      gguf_((path.empty() ? model::GgufFile::Parse(bytes_) : model::GgufFile::Open(path)).value()),
      config_(model::ReadModelConfig(gguf_).value()),
      threads_(threads) {
  worker::ThreadTeam team(threads);
  weights_ = worker::ModelWeights::Load(gguf_, config_, team).value();
}

std::unique_ptr<Subject> Subject::Tiny(const model::testing::TinyModelOptions& options) {
  std::unique_ptr<Subject> subject(new Subject(TinyModel(options), "", 1));
  subject->AskBoth(subject->NewQuestion(301, 20));
  subject->AskBoth(subject->NewQuestion(250, 40));  // generates over the border of a split
  subject->AskBoth(subject->NewQuestion(33, 40));
  subject->AskBoth(subject->NewQuestion(64, 10));  // ends with a block
  subject->AskBoth(subject->NewQuestion(3, 70));
  subject->some_ = subject->all();
  subject->fewest_ = {2, 5, 7};
  subject->tight_pool_blocks_ = 14;
  return subject;
}

std::unique_ptr<Subject> Subject::SmolLm2() {
  const char* path = std::getenv("PAGODA_TEST_MODEL");
  if (path == nullptr) return nullptr;
  std::unique_ptr<Subject> subject(new Subject("", path, 2));
  subject->AskGreedy(subject->NewQuestion(270, 8));
  subject->AskBoth(subject->NewQuestion(60, 6));  // these four generate over the border of a block,
  subject->AskBoth(subject->NewQuestion(58, 8));  // which is what a tight pool lacks
  subject->AskBoth(subject->NewQuestion(6, 3));
  subject->AskSampled(subject->NewQuestion(40, 4));
  subject->some_ = {1, 2};
  subject->fewest_ = {5};
  subject->tight_pool_blocks_ = 16;
  return subject;
}

Question Subject::NewQuestion(int32_t prompt_tokens, uint32_t max_tokens) const {
  const auto vocabulary = static_cast<uint32_t>(config_.vocabulary);
  const auto salt = static_cast<uint32_t>(questions_.size());
  return {.prompt = SomeTokens(prompt_tokens, vocabulary, salt), .max_tokens = max_tokens};
}

void Subject::AskSampled(Question question) {
  question.sampling = {
      .temperature = 0.8f, .top_k = 100, .top_p = 0.95f, .seed = 7 + questions_.size()};
  questions_.push_back(std::move(question));
}

void Subject::AskBoth(const Question& question) {
  AskGreedy(question);
  AskSampled(question);
}

std::vector<Answer> Subject::AnswerByHand(kernels::KvDtype kv) const {
  RunnerHarness harness(gguf_, {.kv = kv, .num_blocks = 16, .max_samples = 1});
  std::vector<Answer> answers;
  for (const Question& question : questions_) answers.push_back(AskByHand(harness, question));
  return answers;
}

std::vector<size_t> Subject::all() const {
  std::vector<size_t> indices(questions_.size());
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

}  // namespace pagoda::exactness
