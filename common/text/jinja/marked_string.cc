#include "common/text/jinja/marked_string.h"

#include <algorithm>

namespace pagoda::text::jinja {

void MarkedString::Append(std::string_view text, Origin origin) {
  if (text.empty()) return;
  text_ += text;
  if (!runs_.empty() && runs_.back().origin == origin) {
    runs_.back().end = text_.size();
  } else {
    runs_.push_back({text_.size(), origin});
  }
}

void MarkedString::AppendRange(const MarkedString& other, size_t begin, size_t end) {
  if (begin == end) return;
  for (size_t run = other.RunOf(begin); begin < end; ++run) {
    size_t stop = std::min(end, other.runs_[run].end);
    Append(std::string_view(other.text_).substr(begin, stop - begin), other.runs_[run].origin);
    begin = stop;
  }
}

size_t MarkedString::RunOf(size_t at) const {
  auto run =
      std::upper_bound(runs_.begin(), runs_.end(), at,
                       [](size_t place, const Run& candidate) { return place < candidate.end; });
  return static_cast<size_t>(run - runs_.begin());
}

std::vector<TextSpan> MarkedString::Spans() const {
  std::vector<TextSpan> spans;
  size_t begin = 0;
  for (const Run& run : runs_) {
    spans.push_back({text_.substr(begin, run.end - begin), run.origin});
    begin = run.end;
  }
  return spans;
}

}  // namespace pagoda::text::jinja
