// The exactness contract as a matrix: {paths} x {models and KV formats}. Every answer, tokens and
// logits bit by bit, is the one that a lone runner computes by hand.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/kv/kv_layout.h"
#include "tests/exactness/matrix.h"
#include "tests/exactness/paths.h"

namespace pagoda::exactness {
namespace {

using kernels::KvDtype;
using model::TensorType;
using model::testing::TinyModelOptions;

// The columns of the matrix are these models in these formats.
struct Model {
  const char* name;
  std::unique_ptr<Subject> (*load)();  // null: not there
};

std::unique_ptr<Subject> GroupedTied() { return Subject::Tiny({}); }

std::unique_ptr<Subject> EqualUntied() {
  return Subject::Tiny({.layers = 3,
                        .hidden = 96,
                        .heads = 3,
                        .kv_heads = 3,
                        .head_dim = 128,
                        .ffn = 96,
                        .vocabulary = 300,
                        .tied_head = false,
                        .weights = TensorType::kQ8_0});
}

void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

constexpr Model kTinyModels[] = {{"gqa_tied", GroupedTied}, {"mha_untied", EqualUntied}};
constexpr Model kSmolLm2[] = {{"smollm2", Subject::SmolLm2}};
constexpr KvDtype kFormats[] = {KvDtype::kF32, KvDtype::kBf16, KvDtype::kFp16};

std::vector<Path> RealModelPaths() {
  std::vector<Path> paths = Paths();
  std::erase_if(paths, [](const Path& path) { return path.tiny_only; });
  return paths;
}

// A model in a format, with the right answers; made once.
struct Column {
  std::shared_ptr<const Subject> subject;
  std::vector<Answer> right;
};

const Column* ColumnOf(const Model& model, KvDtype kv) {
  static std::map<std::string, std::shared_ptr<const Subject>> subjects;
  static std::map<std::pair<std::string, KvDtype>, Column> columns;
  if (!subjects.contains(model.name)) subjects[model.name] = model.load();
  const std::shared_ptr<const Subject>& subject = subjects[model.name];
  if (subject == nullptr) return nullptr;
  Column& column = columns[{model.name, kv}];
  if (column.subject == nullptr) column = {subject, subject->AnswerByHand(kv)};
  return &column;
}

Matrix& TheMatrix() {
  static Matrix matrix;
  return matrix;
}

using Cell = std::tuple<Model, KvDtype, Path>;

class ExactnessMatrix : public ::testing::TestWithParam<Cell> {
 protected:
  static void TearDownTestSuite() { std::printf("%s", TheMatrix().ToString().c_str()); }
};

TEST_P(ExactnessMatrix, R2R5R6TheAnswerIsTheOneComputedAlone) {
  const auto& [model, kv, path] = GetParam();
  const Column* column = ColumnOf(model, kv);
  if (column == nullptr) {
    GTEST_SKIP() << "no SmolLM2: PAGODA_TEST_MODEL does not name SmolLM2-135M-Instruct.Q4_1.gguf";
  }
  Trial trial(*column->subject, kv, column->right);
  path.walk(trial);
  for (const std::string& problem : trial.problems()) ADD_FAILURE() << problem;
  TheMatrix().Set(path.name, std::string(model.name) + "/" + KvDtypeName(kv), trial.Verdict());
}

std::string CellName(const ::testing::TestParamInfo<Cell>& info) {
  const auto& [model, kv, path] = info.param;
  return std::string(model.name) + "_" + KvDtypeName(kv) + "_" + path.name;
}

INSTANTIATE_TEST_SUITE_P(Tiny, ExactnessMatrix,
                         ::testing::Combine(::testing::ValuesIn(kTinyModels),
                                            ::testing::ValuesIn(kFormats),
                                            ::testing::ValuesIn(Paths())),
                         CellName);
INSTANTIATE_TEST_SUITE_P(SmolLm2, ExactnessMatrix,
                         ::testing::Combine(::testing::ValuesIn(kSmolLm2),
                                            ::testing::ValuesIn(kFormats),
                                            ::testing::ValuesIn(RealModelPaths())),
                         CellName);

}  // namespace
}  // namespace pagoda::exactness
