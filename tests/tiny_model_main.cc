// Writes a small random-weight model file, so that clusters can be tested without a download.
//
// usage: tiny_model OUT.gguf [--seed N] [--layers N] ... (see --help)
#include <cstdio>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "common/model/testing/tiny_model.h"

int main(int argc, char** argv) {
  using pagoda::model::TensorType;
  pagoda::model::testing::TinyModelOptions options;
  std::string path;
  CLI::App app("Writes a small llama model with random weights as a GGUF file.");
  app.add_option("OUT", path, "the file to write")->required();
  app.add_option("--seed", options.seed, "of the weights");
  app.add_option("--layers", options.layers)->check(CLI::Range(1, 64));
  app.add_option("--hidden", options.hidden, "a multiple of 32")->check(CLI::Range(32, 4096));
  app.add_option("--heads", options.heads)->check(CLI::Range(1, 64));
  app.add_option("--kv-heads", options.kv_heads)->check(CLI::Range(1, 64));
  app.add_option("--head-dim", options.head_dim)->check(CLI::IsMember({64, 128}));
  app.add_option("--ffn", options.ffn, "a multiple of 32")->check(CLI::Range(32, 16384));
  app.add_option("--vocabulary", options.vocabulary)
      ->check(CLI::Range(pagoda::model::testing::kTinyMinVocabulary, 65536));
  app.add_option("--context-length", options.context_length)->check(CLI::Range(1, 1 << 20));
  app.add_option("--tied-head", options.tied_head, "the embedding is the head (true or false)");
  const std::map<std::string, TensorType> types = {
      {"F32", TensorType::kF32}, {"Q4_1", TensorType::kQ4_1}, {"Q8_0", TensorType::kQ8_0}};
  app.add_option("--weights", options.weights, "F32, Q4_1 or Q8_0")
      ->transform(CLI::CheckedTransformer(types));
  app.add_option("--embedding", options.embedding, "F32, Q4_1 or Q8_0")
      ->transform(CLI::CheckedTransformer(types));
  CLI11_PARSE(app, argc, argv);

  const pagoda::Status written = pagoda::model::testing::WriteTinyModel(options, path);
  if (!written.ok()) std::fprintf(stderr, "%s\n", written.ToString().c_str());
  return written.ok() ? 0 : 1;
}
