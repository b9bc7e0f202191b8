// A model's chat template: messages to prompt text, exactly as Jinja2 renders it inside
// `transformers` (trim_blocks, lstrip_blocks, loop controls). The language is jinja/'s subset; what
// a template uses beyond it is refused by name when the template is parsed.
//
// Concurrency: immutable once parsed; Render may be called from any thread at once.
#ifndef PAGODA_COMMON_TEXT_CHAT_TEMPLATE_H_
#define PAGODA_COMMON_TEXT_CHAT_TEMPLATE_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/text/text_span.h"

namespace pagoda::text {

namespace jinja {
class Template;
}

// One turn. Content parts have been joined by the caller.
struct ChatMessage {
  std::string role;  // any string; well-known roles count as template text, others as message text
  std::string content;
};

// The text of the tokens that templates refer to as bos_token and so on; absent = undefined.
struct SpecialTokenText {
  std::optional<std::string> bos;
  std::optional<std::string> eos;
  std::optional<std::string> unk;
  std::optional<std::string> pad;
};

class ChatTemplate {
 public:
  // Errors: INVALID_ARGUMENT for a syntax error, UNIMPLEMENTED for what the subset lacks; both name
  // the line and the thing.
  static StatusOr<ChatTemplate> Parse(std::string_view source,
                                      SpecialTokenText special_tokens = {});

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // Every character of a message keeps its mark through the template's string operations; literals
  // of the template and well-known roles are template text. Neighbouring spans differ in origin.
  // Errors: INVALID_ARGUMENT when the template refuses the messages (raise_exception) or cannot
  // work with them; RESOURCE_EXHAUSTED past a limit of jinja/budget.h.
  StatusOr<std::vector<TextSpan>> Render(std::span<const ChatMessage> messages,
                                         bool add_generation_prompt) const;

 private:
  ChatTemplate(std::unique_ptr<const jinja::Template> parsed, SpecialTokenText special_tokens);

  std::unique_ptr<const jinja::Template> template_;
  SpecialTokenText special_tokens_;
};

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_CHAT_TEMPLATE_H_
