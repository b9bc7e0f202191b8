#include "common/text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace pagoda::text {

std::string StopStrings::Feed(std::string_view text) {
  if (found_) return "";
  held_ += text;
  size_t first_end = std::string::npos, begin = 0;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t end = at + stop.size();
    if (end > first_end || (end == first_end && at > begin)) continue;
    first_end = end;
    begin = at;
  }
  found_ = first_end != std::string::npos;
  const size_t certain = found_ ? begin : held_.size() - Undecided();
  std::string out = held_.substr(0, certain);
  held_.erase(0, found_ ? held_.size() : certain);
  return out;
}

std::string StopStrings::Pass(std::string_view text) {
  if (found_) return "";
  std::string out = std::exchange(held_, "");
  out += text;
  return out;
}

size_t StopStrings::Undecided() const {
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    // A whole one would have been found.
    for (size_t size = std::min(stop.size() - 1, held_.size()); size > longest; --size) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, size))) longest = size;
    }
  }
  return longest;
}

}  // namespace pagoda::text
