#include "common/text/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "common/text/byte_bpe.h"

namespace pagoda::text {

std::string DecodeBytes(const Tokenizer& tokenizer, std::span<const uint32_t> ids) {
  std::string bytes;
  for (uint32_t id : ids) bytes += tokenizer.TokenBytes(id);
  return bytes;
}

Status CheckTokenIds(const Tokenizer& tokenizer, std::span<const uint32_t> ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= tokenizer.vocabulary_size()) {
      return absl::InvalidArgumentError(absl::StrCat("token id ", ids[i], " at place ", i,
                                                     " is not below the vocabulary's size ",
                                                     tokenizer.vocabulary_size()));
    }
  }
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<const Tokenizer>> MakeTokenizer(const TokenizerSpec& spec) {
  if (spec.model == "gpt2") return ByteBpe::Make(spec);
  return absl::UnimplementedError(
      absl::StrCat("tokenizer model \"", spec.model, "\" is not built in (gpt2 is)"));
}

}  // namespace pagoda::text
