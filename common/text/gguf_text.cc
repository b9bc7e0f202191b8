#include "common/text/gguf_text.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/gguf.h"

namespace pagoda::text {
namespace {

std::string Key(std::string_view name) {
  return absl::StrCat("tokenizer.ggml.", std::string(name));
}

std::vector<std::string> Copies(const std::vector<std::string_view>& views) {
  return std::vector<std::string>(views.begin(), views.end());
}

StatusOr<std::optional<uint32_t>> OptionalId(const model::GgufFile& file, std::string_view name) {
  std::string key = Key(name);
  if (!file.Has(key)) return std::nullopt;
  // Whether it is below the vocabulary's size is checked where the model is made.
  PAGODA_ASSIGN_OR_RETURN(uint64_t id, file.Uint(key, UINT32_MAX));
  return static_cast<uint32_t>(id);
}

StatusOr<std::vector<TokenType>> Types(const model::GgufFile& file, size_t tokens) {
  std::string key = Key("token_type");
  if (!file.Has(key)) return std::vector<TokenType>(tokens, TokenType::kNormal);
  PAGODA_ASSIGN_OR_RETURN(std::vector<int64_t> numbers, file.Ints(key));
  std::vector<TokenType> types;
  types.reserve(numbers.size());
  for (int64_t number : numbers) {
    if (number < 0 || number > UINT8_MAX) {
      return absl::InvalidArgumentError(absl::StrCat(key, " holds ", number, "; 1 to 6 are known"));
    }
    types.push_back(static_cast<TokenType>(number));
  }
  return types;
}

}  // namespace

StatusOr<TokenizerSpec> ReadTokenizerSpec(const model::GgufFile& file) {
  TokenizerSpec spec;
  PAGODA_ASSIGN_OR_RETURN(std::string_view model, file.String(Key("model")));
  spec.model = model;
  if (std::string key = Key("pre"); file.Has(key)) {
    PAGODA_ASSIGN_OR_RETURN(std::string_view pre, file.String(key));
    spec.pre_tokenizer = pre;
  }
  PAGODA_ASSIGN_OR_RETURN(std::vector<std::string_view> tokens, file.Strings(Key("tokens")));
  spec.tokens = Copies(tokens);
  PAGODA_ASSIGN_OR_RETURN(spec.types, Types(file, tokens.size()));
  if (std::string key = Key("merges"); file.Has(key)) {
    PAGODA_ASSIGN_OR_RETURN(std::vector<std::string_view> merges, file.Strings(key));
    spec.merges = Copies(merges);
  }
  if (std::string key = Key("add_bos_token"); file.Has(key)) {
    PAGODA_ASSIGN_OR_RETURN(spec.add_bos, file.Bool(key));
  }
  PAGODA_ASSIGN_OR_RETURN(spec.bos, OptionalId(file, "bos_token_id"));
  PAGODA_ASSIGN_OR_RETURN(spec.eos, OptionalId(file, "eos_token_id"));
  PAGODA_ASSIGN_OR_RETURN(spec.eot, OptionalId(file, "eot_token_id"));
  PAGODA_ASSIGN_OR_RETURN(spec.eom, OptionalId(file, "eom_token_id"));
  PAGODA_ASSIGN_OR_RETURN(spec.unk, OptionalId(file, "unknown_token_id"));
  PAGODA_ASSIGN_OR_RETURN(spec.pad, OptionalId(file, "padding_token_id"));
  if (file.Has("tokenizer.chat_template")) {
    PAGODA_ASSIGN_OR_RETURN(std::string_view source, file.String("tokenizer.chat_template"));
    spec.chat_template = source;
  }
  return spec;
}

}  // namespace pagoda::text
