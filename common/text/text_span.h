// Text with the place it comes from: what the template wrote, or what a message said. Control
// tokens are recognised only in what the template wrote.
//
// Concurrency: plain values.
#ifndef PAGODA_COMMON_TEXT_TEXT_SPAN_H_
#define PAGODA_COMMON_TEXT_TEXT_SPAN_H_

#include <cstdint>
#include <string>
#include <vector>

namespace pagoda::text {

enum class Origin : uint8_t {
  kTemplate,  // the chat template, or the prompt of /v1/completions: control tokens are parsed
  kMessage,   // what a client put into a message: everything is plain text
};

struct TextSpan {
  std::string text;
  Origin origin = Origin::kTemplate;

  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};

// The spans' text without their marks.
inline std::string Join(const std::vector<TextSpan>& spans) {
  std::string all;
  for (const TextSpan& span : spans) all += span.text;
  return all;
}

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_TEXT_SPAN_H_
