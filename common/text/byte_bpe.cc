#include "common/text/byte_bpe.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"
#include "common/text/byte_alphabet.h"

namespace pagoda::text {
namespace {

// The largest vocabularies in use have 262,144 tokens; merges are at most as many but for a few.
constexpr size_t kMaxVocabulary = size_t{1} << 21;
constexpr size_t kMaxVocabularyBytes = size_t{256} << 20;

bool IsControlType(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown;
}

std::string MergeName(size_t rank, std::string_view merge) {
  return absl::StrCat("merge ", rank, " \"", std::string(merge.substr(0, 80)), "\"");
}

}  // namespace

StatusOr<std::unique_ptr<const Tokenizer>> ByteBpe::Make(const TokenizerSpec& spec) {
  if (spec.tokens.empty() || spec.tokens.size() > kMaxVocabulary) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tokenizer: ", spec.tokens.size(), " tokens; 1 to ", kMaxVocabulary, " are allowed"));
  }
  if (spec.types.size() != spec.tokens.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tokenizer: ", spec.tokens.size(), " tokens but ", spec.types.size(), " token types"));
  }
  if (spec.merges.size() > kMaxVocabulary) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tokenizer: ", spec.merges.size(), " merges; at most ", kMaxVocabulary, " are allowed"));
  }
  PAGODA_ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer, PreTokenizer::Make(spec.pre_tokenizer));
  std::unique_ptr<ByteBpe> bpe(new ByteBpe(std::move(pre_tokenizer)));
  bpe->add_bos_ = spec.add_bos;
  bpe->bos_ = spec.bos;
  Vocabulary vocabulary;
  PAGODA_RETURN_IF_ERROR(bpe->AddTokens(spec, vocabulary));
  PAGODA_RETURN_IF_ERROR(bpe->AddMerges(spec, vocabulary));
  return bpe;
}

Status ByteBpe::AddTokens(const TokenizerSpec& spec, Vocabulary& vocabulary) {
  vocabulary.reserve(spec.tokens.size());
  for (uint32_t id = 0; id < spec.tokens.size(); ++id) {
    const std::string& token = spec.tokens[id];
    TokenType type = spec.types[id];
    if (type < TokenType::kNormal || type > TokenType::kByte) {
      return absl::InvalidArgumentError(absl::StrCat("tokenizer: token ", id, " has the type ",
                                                     static_cast<int>(type), "; 1 to 6 are known"));
    }
    bool control = IsControlType(type);
    bool added = control || type == TokenType::kUserDefined;
    if (added) PAGODA_RETURN_IF_ERROR(Annotate(added_.Add(token, id, control), "tokenizer"));
    if (!control) {
      auto [entry, fresh] = vocabulary.try_emplace(token, id);
      if (!fresh) {
        return absl::InvalidArgumentError(
            absl::StrCat("tokenizer: tokens ", entry->second, " and ", id, " are the same text"));
      }
    }
    std::optional<std::string> bytes = added ? std::nullopt : BytesOfPrintable(token);
    const std::string& plain = bytes.has_value() ? *bytes : token;
    if (bytes_.size() + plain.size() > kMaxVocabularyBytes) {
      return absl::InvalidArgumentError(absl::StrCat("tokenizer: the tokens have more than ",
                                                     kMaxVocabularyBytes, " bytes in all"));
    }
    bytes_ += plain;
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
    control_.push_back(control);
    longest_token_bytes_ = std::max(longest_token_bytes_, plain.size());
  }
  for (int byte = 0; byte < 256; ++byte) {
    auto found = vocabulary.find(ByteCharacters()[byte]);
    if (found != vocabulary.end()) byte_ids_[byte] = found->second;
  }
  return absl::OkStatus();
}

Status ByteBpe::AddMerges(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  merges_.Reserve(spec.merges.size());
  std::string joined;
  for (uint32_t rank = 0; rank < spec.merges.size(); ++rank) {
    std::string_view merge = spec.merges[rank];
    size_t space = merge.find(' ');
    if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer: ", MergeName(rank, merge), " is not two tokens"));
    }
    joined.assign(merge.substr(0, space));
    joined += merge.substr(space + 1);
    auto left = vocabulary.find(merge.substr(0, space));
    auto right = vocabulary.find(merge.substr(space + 1));
    auto merged = vocabulary.find(joined);
    // Control tokens are not in `vocabulary`: spelled-out text can never become one.
    if (left == vocabulary.end() || right == vocabulary.end() || merged == vocabulary.end()) {
      return absl::InvalidArgumentError(absl::StrCat("tokenizer: ", MergeName(rank, merge),
                                                     " uses or makes what is not a plain token"));
    }
    if (!merges_.Add(left->second, right->second, rank, merged->second)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer: ", MergeName(rank, merge), " is listed twice"));
    }
  }
  return absl::OkStatus();
}

StatusOr<std::vector<uint32_t>> ByteBpe::Encode(std::span<const TextSpan> spans) const {
  std::string text;
  std::vector<size_t> template_ends;  // template_ends[i]: ends of runs of template text, ascending
  std::vector<size_t> template_begins;
  for (const TextSpan& span : spans) {
    if (span.text.size() > kMaxEncodeBytes - text.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the text has more than ", kMaxEncodeBytes, " bytes"));
    }
    if (span.origin == Origin::kTemplate && !span.text.empty()) {
      if (template_ends.empty() || template_ends.back() != text.size()) {
        template_begins.push_back(text.size());
        template_ends.push_back(text.size());
      }
      template_ends.back() += span.text.size();
    }
    text += span.text;
  }
  if (size_t valid = Utf8ValidPrefix(text); valid != text.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the text is not UTF-8 at byte ", valid));
  }

  std::vector<uint32_t> ids;
  BpeMerges::Scratch scratch;
  size_t plain = 0;  // where text that is not encoded yet begins
  size_t run = 0;    // the run of template text that ends after `at`
  for (size_t at = 0; at < text.size();) {
    while (run < template_ends.size() && template_ends[run] <= at) ++run;
    bool in_template = run < template_ends.size() && template_begins[run] <= at;
    auto match = added_.Find(text, at, in_template ? template_ends[run] : 0);
    if (!match.has_value()) {
      ++at;
      continue;
    }
    PAGODA_RETURN_IF_ERROR(
        EncodePlain(std::string_view(text).substr(plain, at - plain), scratch, ids));
    ids.push_back(match->id);
    at += match->length;
    plain = at;
  }
  PAGODA_RETURN_IF_ERROR(EncodePlain(std::string_view(text).substr(plain), scratch, ids));
  return ids;
}

Status ByteBpe::EncodePlain(std::string_view text, BpeMerges::Scratch& scratch,
                            std::vector<uint32_t>& ids) const {
  std::vector<uint32_t> word;
  return pre_tokenizer_.Split(text, [&](std::string_view piece) {
    word.clear();
    for (char byte : piece) {
      const auto& id = byte_ids_[static_cast<unsigned char>(byte)];
      if (id.has_value()) word.push_back(*id);
    }
    merges_.Apply(word, scratch);
    ids.insert(ids.end(), word.begin(), word.end());
  });
}

std::string_view ByteBpe::TokenBytes(uint32_t id) const {
  if (id >= ends_.size()) return {};
  uint32_t begin = id == 0 ? 0 : ends_[id - 1];
  return std::string_view(bytes_).substr(begin, ends_[id] - begin);
}

}  // namespace pagoda::text
