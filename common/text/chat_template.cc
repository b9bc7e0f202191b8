#include "common/text/chat_template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"
#include "common/text/jinja/template.h"
#include "common/text/jinja/value.h"

namespace pagoda::text {
namespace {

// Some templates build a control token around the role ('<|' + role + '|>'). These roles are ours
// to name; any other string is the client's.
constexpr std::array<std::string_view, 7> kKnownRoles = {
    "system", "user", "assistant", "tool", "developer", "function", "ipython"};

Origin RoleOrigin(std::string_view role) {
  bool known = std::find(kKnownRoles.begin(), kKnownRoles.end(), role) != kKnownRoles.end();
  return known ? Origin::kTemplate : Origin::kMessage;
}

jinja::StringRef Key(std::string_view name) {
  return std::make_shared<const jinja::MarkedString>(name, Origin::kTemplate);
}

StatusOr<jinja::Value> MessageList(std::span<const ChatMessage> messages) {
  std::vector<jinja::Value> list;
  jinja::StringRef role = Key("role");
  jinja::StringRef content = Key("content");
  for (const ChatMessage& message : messages) {
    for (const std::string* text : {&message.role, &message.content}) {
      size_t valid = Utf8ValidPrefix(*text);
      if (valid == text->size()) continue;
      return absl::InvalidArgumentError(absl::StrCat("messages[", list.size(), "].",
                                                     text == &message.role ? "role" : "content",
                                                     " is not UTF-8 at byte ", valid));
    }
    PAGODA_ASSIGN_OR_RETURN(
        jinja::Value entry,
        jinja::MakeDict({{role, jinja::MakeString(message.role, RoleOrigin(message.role))},
                         {content, jinja::MakeString(message.content, Origin::kMessage)}}));
    list.push_back(std::move(entry));
  }
  return jinja::MakeList(std::move(list), jinja::ListKind::kList);
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<const jinja::Template> parsed,
                           SpecialTokenText special_tokens)
    : template_(std::move(parsed)), special_tokens_(std::move(special_tokens)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

StatusOr<ChatTemplate> ChatTemplate::Parse(std::string_view source,
                                           SpecialTokenText special_tokens) {
  PAGODA_ASSIGN_OR_RETURN(auto parsed, jinja::Template::Parse(source));
  return ChatTemplate(std::move(parsed), std::move(special_tokens));
}

StatusOr<std::vector<TextSpan>> ChatTemplate::Render(std::span<const ChatMessage> messages,
                                                     bool add_generation_prompt) const {
  PAGODA_ASSIGN_OR_RETURN(jinja::Value list, MessageList(messages));
  // What `transformers` passes: tools and documents are there, and none.
  jinja::Variables variables = {{"messages", std::move(list)},
                                {"tools", jinja::None{}},
                                {"documents", jinja::None{}},
                                {"add_generation_prompt", add_generation_prompt}};
  auto pass = [&](const char* name, const std::optional<std::string>& text) {
    if (text.has_value()) {
      variables.emplace_back(name, jinja::MakeString(*text, Origin::kTemplate));
    }
  };
  pass("bos_token", special_tokens_.bos);
  pass("eos_token", special_tokens_.eos);
  pass("unk_token", special_tokens_.unk);
  pass("pad_token", special_tokens_.pad);
  auto rendered = template_->Render(std::move(variables));
  if (!rendered.ok()) return Annotate(rendered.status(), "chat template");
  return rendered->Spans();
}

}  // namespace pagoda::text
