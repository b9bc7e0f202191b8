#include "services/router/testing/test_model.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "common/base/random.h"
#include "common/model/gguf.h"
#include "common/model/testing/tiny_model.h"
#include "common/text/gguf_text.h"

namespace pagoda::router::testing {
namespace {

template <typename T>
T OrDie(StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "test model: %s\n", result.status().ToString().c_str());
  std::abort();
}

model::testing::TinyModelOptions TinyOptions() {
  model::testing::TinyModelOptions options;
  options.layers = 1;
  options.context_length = kTestContext;
  return options;
}

}  // namespace

std::shared_ptr<const ServedModel> MakeTestModel() {
  std::string bytes = model::testing::TinyModel(TinyOptions());
  auto file = OrDie(model::GgufFile::Parse(bytes));
  auto text = OrDie(text::TextModel::Make(OrDie(text::ReadTokenizerSpec(file))));
  return std::make_shared<const ServedModel>(
      std::move(text), std::vector<std::string>{"tiny", "tiny-alias"}, kTestContext, 1'700'000'000);
}

std::unique_ptr<RouterServer> StartTestRouter(RouterServer::Options options) {
  auto folder = std::filesystem::temp_directory_path() / ("pagoda-router-" + RandomHex128());
  std::filesystem::create_directory(folder);
  std::string path = (folder / "tiny.gguf").string();
  Status written = model::testing::WriteTinyModel(TinyOptions(), path);
  if (!written.ok()) std::abort();
  options.grpc_address = "127.0.0.1:0";
  options.http_address = "127.0.0.1:0";
  options.model = path;
  options.health.frozen_after = std::chrono::hours(1);  // fake workers report once
  auto router = OrDie(RouterServer::Start(options));
  std::filesystem::remove_all(folder);  // the router has read what it needs
  return router;
}

}  // namespace pagoda::router::testing
