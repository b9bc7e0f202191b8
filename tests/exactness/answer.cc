#include "tests/exactness/answer.h"

#include <cstring>

namespace pagoda::exactness {

std::string Difference(const Answer& right, const Answer& got, size_t from) {
  if (!got.result.status.ok()) return "failed: " + got.result.status.ToString();
  if (got.logits.size() != got.tokens.size()) {
    return std::to_string(got.tokens.size()) + " tokens were chosen from " +
           std::to_string(got.logits.size()) + " rows of logits";
  }
  for (size_t i = from; i < right.tokens.size(); ++i) {
    const size_t at = i - from;
    if (at >= got.tokens.size()) return "token " + std::to_string(i) + " is missing";
    const std::vector<float>& a = right.logits[i];
    const std::vector<float>& b = got.logits[at];
    if (a.size() != b.size() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0) {
      return "the logits of token " + std::to_string(i) + " differ";
    }
    if (got.tokens[at] != right.tokens[i]) return "token " + std::to_string(i) + " differs";
  }
  if (got.tokens.size() > right.tokens.size() - from) return "there are more tokens than asked for";
  return "";
}

}  // namespace pagoda::exactness
