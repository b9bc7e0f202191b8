#include "common/text/detokenizer.h"

#include <string_view>

#include "common/base/utf8.h"

namespace pagoda::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// How many bytes of text[at] on could be the start of one well-formed character, and how long that
// character would be. REQUIRES: no well-formed character starts at `at`.
struct Start {
  size_t have = 1;
  size_t need = 1;  // 1: no character starts with this byte
};

Start IllFormedStart(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(at);
  if (lead < 0xC2 || lead > 0xF4) return {};
  Start start{.have = 1, .need = lead < 0xE0 ? 2u : lead < 0xF0 ? 3u : 4u};
  // The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF.
  unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  while (start.have < start.need && at + start.have < text.size()) {
    unsigned char next = byte(at + start.have);
    if (next < low || next > high) break;
    ++start.have;
    low = 0x80;
    high = 0xBF;
  }
  return start;
}

}  // namespace

std::string Detokenizer::Feed(std::span<const uint32_t> ids) {
  std::string bytes;
  bytes.swap(held_);
  for (uint32_t id : ids) {
    if (control_ == ControlText::kSkip && tokenizer_->IsControl(id)) continue;
    bytes += tokenizer_->TokenBytes(id);
  }
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    if (size_t length = Utf8SequenceLength(bytes, at); length != 0) {
      text.append(bytes, at, length);
      at += length;
      continue;
    }
    Start start = IllFormedStart(bytes, at);
    if (start.need > 1 && at + start.have == bytes.size()) {
      held_ = bytes.substr(at);
      break;
    }
    text += kReplacement;
    at += start.have;
  }
  return text;
}

std::string Detokenizer::Finish() {
  if (held_.empty()) return {};
  held_.clear();
  return std::string(kReplacement);
}

std::string Decode(const Tokenizer& tokenizer, std::span<const uint32_t> ids, ControlText control) {
  Detokenizer detokenizer(&tokenizer, control);
  std::string text = detokenizer.Feed(ids);
  text += detokenizer.Finish();
  return text;
}

}  // namespace pagoda::text
