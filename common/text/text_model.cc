#include "common/text/text_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pagoda::text {
namespace {

// Names the meaning of the bytes that follow; changes when equal bytes would give other ids.
constexpr std::string_view kDigestDomain = "pagoda.text.v1";

// An eos list longer than this is a broken file.
constexpr size_t kMaxStopIds = 1024;

struct NamedId {
  const char* name;
  std::optional<uint32_t> id;
};

Status CheckIds(const TokenizerSpec& spec) {
  auto check = [&](const char* name, uint32_t id) -> Status {
    if (id < spec.tokens.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("tokenizer: ", name, " id ", id,
                                                   " is not below the vocabulary's size ",
                                                   spec.tokens.size()));
  };
  for (const NamedId& named : std::array<NamedId, 6>{{{"bos", spec.bos},
                                                      {"eos", spec.eos},
                                                      {"eot", spec.eot},
                                                      {"eom", spec.eom},
                                                      {"unk", spec.unk},
                                                      {"pad", spec.pad}}}) {
    if (named.id.has_value()) PAGODA_RETURN_IF_ERROR(check(named.name, *named.id));
  }
  if (spec.generation_eos.size() > kMaxStopIds) {
    return absl::InvalidArgumentError(absl::StrCat("tokenizer: ", spec.generation_eos.size(),
                                                   " eos ids; at most ", kMaxStopIds,
                                                   " are allowed"));
  }
  for (uint32_t id : spec.generation_eos) PAGODA_RETURN_IF_ERROR(check("generation eos", id));
  if (spec.add_bos && !spec.bos.has_value()) {
    return absl::InvalidArgumentError("tokenizer: add_bos is set but there is no bos id");
  }
  return absl::OkStatus();
}

std::vector<uint32_t> StopIds(const TokenizerSpec& spec) {
  std::vector<uint32_t> ids = spec.generation_eos;
  for (const auto& id : {spec.eos, spec.eot, spec.eom}) {
    if (id.has_value()) ids.push_back(*id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

SpecialTokenText SpecialTexts(const TokenizerSpec& spec) {
  auto text = [&](std::optional<uint32_t> id) {
    return id.has_value() ? std::optional<std::string>(spec.tokens[*id]) : std::nullopt;
  };
  return {
      .bos = text(spec.bos), .eos = text(spec.eos), .unk = text(spec.unk), .pad = text(spec.pad)};
}

}  // namespace

StatusOr<std::unique_ptr<const TextModel>> TextModel::Make(const TokenizerSpec& spec) {
  PAGODA_RETURN_IF_ERROR(CheckIds(spec));
  std::unique_ptr<TextModel> model(new TextModel());
  PAGODA_ASSIGN_OR_RETURN(model->tokenizer_, MakeTokenizer(spec));
  if (!spec.chat_template.empty()) {
    auto parsed = ChatTemplate::Parse(spec.chat_template, SpecialTexts(spec));
    if (!parsed.ok()) return Annotate(parsed.status(), "chat template");
    model->chat_template_ = *std::move(parsed);
  }
  model->stop_ids_ = StopIds(spec);
  model->serialized_ = SerializeSpec(spec);
  Sha256 hash;
  hash.Update(kDigestDomain);
  hash.Update(model->serialized_);
  model->digest_ = hash.Finish();
  return model;
}

StatusOr<std::unique_ptr<const TextModel>> TextModel::FromSerialized(std::string_view bytes) {
  PAGODA_ASSIGN_OR_RETURN(TokenizerSpec spec, ParseSpec(bytes));
  return Make(spec);
}

StatusOr<std::vector<uint32_t>> TextModel::EncodePrompt(std::string_view prompt) const {
  PAGODA_ASSIGN_OR_RETURN(std::vector<uint32_t> ids, tokenizer_->Encode(prompt, Origin::kTemplate));
  if (tokenizer_->add_bos()) {
    uint32_t bos = *tokenizer_->bos();
    if (ids.empty() || ids.front() != bos) ids.insert(ids.begin(), bos);
  }
  return ids;
}

StatusOr<std::vector<uint32_t>> TextModel::EncodeChat(std::span<const ChatMessage> messages,
                                                      bool add_generation_prompt) const {
  if (!chat_template_.has_value()) {
    return absl::FailedPreconditionError("the model has no chat template");
  }
  PAGODA_ASSIGN_OR_RETURN(std::vector<TextSpan> spans,
                          chat_template_->Render(messages, add_generation_prompt));
  return tokenizer_->Encode(spans);
}

}  // namespace pagoda::text
