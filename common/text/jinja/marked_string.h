// A string in which each byte remembers where it came from, through every operation of a template.
//
// Concurrency: plain values.
#ifndef PAGODA_COMMON_TEXT_JINJA_MARKED_STRING_H_
#define PAGODA_COMMON_TEXT_JINJA_MARKED_STRING_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/text/text_span.h"

namespace pagoda::text::jinja {

class MarkedString {
 public:
  MarkedString() = default;
  MarkedString(std::string_view text, Origin origin) { Append(text, origin); }

  const std::string& text() const { return text_; }
  size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }

  void Append(std::string_view text, Origin origin);
  void Append(const MarkedString& other) { AppendRange(other, 0, other.size()); }
  // The bytes [begin, end) of `other` with their marks. REQUIRES: begin <= end <= other.size().
  void AppendRange(const MarkedString& other, size_t begin, size_t end);

  MarkedString Slice(size_t begin, size_t end) const {
    MarkedString slice;
    slice.AppendRange(*this, begin, end);
    return slice;
  }

  // The mark of the byte at `at`. REQUIRES: at < size().
  Origin OriginAt(size_t at) const { return runs_[RunOf(at)].origin; }

  // Changes bytes in place and keeps their marks.
  template <typename Function>
  void TransformBytes(Function function) {
    for (char& byte : text_) byte = function(byte);
  }

  // Neighbours differ in origin; none is empty.
  std::vector<TextSpan> Spans() const;

 private:
  struct Run {
    size_t end;
    Origin origin;
  };

  size_t RunOf(size_t at) const;  // the run that holds byte `at`

  std::string text_;
  std::vector<Run> runs_;  // ascending ends, the last is size(); neighbours differ
};

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_MARKED_STRING_H_
