// Tokens that are matched whole in the text before BPE: control tokens and user-defined ones. Where
// several start at one place, the longest wins.
//
// Concurrency: immutable once filled; Find may be called from any thread at once.
#ifndef PAGODA_COMMON_TEXT_ADDED_TOKENS_H_
#define PAGODA_COMMON_TEXT_ADDED_TOKENS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/status.h"

namespace pagoda::text {

// Bounds the work of a match at one place; the longest in use are near 40 bytes, user-defined runs
// of spaces included.
inline constexpr size_t kMaxAddedTokenBytes = 512;

class AddedTokens {
 public:
  struct Match {
    uint32_t id = 0;
    size_t length = 0;  // bytes
  };

  // Errors: INVALID_ARGUMENT when the text is empty, too long or already there.
  Status Add(std::string_view text, uint32_t id, bool control);

  // The longest token that starts at byte `at`. A control token counts only when it ends at or
  // before `control_end`. REQUIRES: at < text.size().
  std::optional<Match> Find(std::string_view text, size_t at, size_t control_end) const;

 private:
  struct Node {
    bool ends = false;  // a token ends here
    bool control = false;
    uint32_t id = 0;
  };

  static uint64_t Edge(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }

  std::vector<Node> nodes_ = {Node{}};  // a trie; 0 is its root
  absl::flat_hash_map<uint64_t, uint32_t> edges_;
  std::array<bool, 256> starts_{};  // bytes that some token starts with
};

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_ADDED_TOKENS_H_
