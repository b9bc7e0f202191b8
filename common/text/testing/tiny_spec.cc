#include "common/text/testing/tiny_spec.h"

#include <algorithm>
#include <fstream>

#include "common/base/bytes.h"
#include "nlohmann/json.hpp"

namespace pagoda::text::testing {
namespace {

const nlohmann::json& Golden() {
  static const nlohmann::json golden = [] {
    std::ifstream file(PAGODA_TEXT_TESTDATA "/tiny.json");
    return nlohmann::json::parse(file);
  }();
  return golden;
}

}  // namespace

TokenizerSpec TinySpec() {
  TokenizerSpec spec;
  spec.model = "gpt2";
  spec.pre_tokenizer = "smollm";
  spec.tokens = Golden()["tokens"].get<std::vector<std::string>>();
  for (int type : Golden()["types"]) spec.types.push_back(static_cast<TokenType>(type));
  spec.merges = Golden()["merges"].get<std::vector<std::string>>();
  auto id = [&](const char* token) {
    auto found = std::find(spec.tokens.begin(), spec.tokens.end(), token);
    return static_cast<uint32_t>(found - spec.tokens.begin());
  };
  spec.bos = id("<@start@>");
  spec.eos = id("<@end@>");
  return spec;
}

std::vector<TinyCase> TinyCases() {
  std::vector<TinyCase> cases;
  for (const auto& entry : Golden()["cases"]) {
    cases.push_back({entry["text"], entry["parsed"], entry["spelled"]});
  }
  return cases;
}

std::vector<ReplacedCase> ReplacedCases() {
  std::vector<ReplacedCase> cases;
  for (const auto& entry : Golden()["replaced"]) {
    cases.push_back({FromHex(entry["hex"].get<std::string>()).value(), entry["text"]});
  }
  return cases;
}

}  // namespace pagoda::text::testing
