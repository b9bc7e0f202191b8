#include "common/text/added_tokens.h"

#include "absl/strings/str_cat.h"

namespace pagoda::text {

Status AddedTokens::Add(std::string_view text, uint32_t id, bool control) {
  if (text.empty() || text.size() > kMaxAddedTokenBytes) {
    return absl::InvalidArgumentError(absl::StrCat("added token ", id, " has ", text.size(),
                                                   " bytes; 1 to ", kMaxAddedTokenBytes,
                                                   " are allowed"));
  }
  uint32_t node = 0;
  for (char byte : text) {
    auto [edge, fresh] = edges_.try_emplace(Edge(node, byte), static_cast<uint32_t>(nodes_.size()));
    node = edge->second;
    if (fresh) nodes_.emplace_back();
  }
  if (nodes_[node].ends) {
    return absl::InvalidArgumentError(
        absl::StrCat("added tokens ", nodes_[node].id, " and ", id, " are the same text"));
  }
  nodes_[node] = {.ends = true, .control = control, .id = id};
  starts_[static_cast<unsigned char>(text[0])] = true;
  return absl::OkStatus();
}

std::optional<AddedTokens::Match> AddedTokens::Find(std::string_view text, size_t at,
                                                    size_t control_end) const {
  if (!starts_[static_cast<unsigned char>(text[at])]) return std::nullopt;
  std::optional<Match> longest;
  uint32_t node = 0;
  for (size_t end = at; end < text.size(); ++end) {
    auto edge = edges_.find(Edge(node, text[end]));
    if (edge == edges_.end()) break;
    node = edge->second;
    const Node& reached = nodes_[node];
    if (reached.ends && (!reached.control || end + 1 <= control_end)) {
      longest = Match{reached.id, end + 1 - at};
    }
  }
  return longest;
}

}  // namespace pagoda::text
