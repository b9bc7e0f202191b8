// All that turns text into a model's tokens and back: tokenizer, chat template, stop set, and the
// digest that names them. This is what the router holds for a model.
//
// Concurrency: immutable once made; every method may be called from any thread at once.
#ifndef PAGODA_COMMON_TEXT_TEXT_MODEL_H_
#define PAGODA_COMMON_TEXT_TEXT_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/sha256.h"
#include "common/base/status.h"
#include "common/text/chat_template.h"
#include "common/text/tokenizer.h"
#include "common/text/tokenizer_spec.h"

namespace pagoda::text {

class TextModel {
 public:
  // Errors: UNIMPLEMENTED naming a tokenizer, pre-tokenizer or template feature that is not built
  // in; INVALID_ARGUMENT naming what is wrong with the data.
  static StatusOr<std::unique_ptr<const TextModel>> Make(const TokenizerSpec& spec);

  // From SerializeSpec's bytes, as a worker sends them.
  static StatusOr<std::unique_ptr<const TextModel>> FromSerialized(std::string_view bytes);

  const Tokenizer& tokenizer() const { return *tokenizer_; }

  // nullptr: the model has no chat template.
  const ChatTemplate* chat_template() const {
    return chat_template_.has_value() ? &*chat_template_ : nullptr;
  }

  // A prompt of /v1/completions: control tokens are parsed, BOS comes first where the model says so
  // and the prompt does not start with it already.
  StatusOr<std::vector<uint32_t>> EncodePrompt(std::string_view prompt) const;

  // The chat template's text of the messages as ids. Errors: FAILED_PRECONDITION when the model has
  // no template; those of ChatTemplate::Render and Tokenizer::Encode.
  StatusOr<std::vector<uint32_t>> EncodeChat(std::span<const ChatMessage> messages,
                                             bool add_generation_prompt) const;

  // Ids that end an answer, ascending: the eos list of the generation configuration, eos, eot, eom.
  const std::vector<uint32_t>& stop_ids() const { return stop_ids_; }

  // SHA-256 over serialized(), domain-tagged: equal digests mean equal ids for equal requests.
  const Digest256& digest() const { return digest_; }
  const std::string& serialized() const { return serialized_; }

 private:
  TextModel() = default;

  std::unique_ptr<const Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_template_;
  std::vector<uint32_t> stop_ids_;
  std::string serialized_;
  Digest256 digest_{};
};

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_TEXT_MODEL_H_
