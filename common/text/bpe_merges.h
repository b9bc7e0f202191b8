// Byte-pair merging: the most important pair of neighbours first, the leftmost among equals, until
// no pair has a merge (Sennrich et al. 2016, section 3.2; order as in GPT-2's encoder).
//
// Near-linear: a heap of candidate pairs over a linked list, so a word of n symbols takes at most
// 3 n candidates of O(log n) each.
//
// Concurrency: immutable once filled; Apply may be called from any thread with its own Scratch.
#ifndef PAGODA_COMMON_TEXT_BPE_MERGES_H_
#define PAGODA_COMMON_TEXT_BPE_MERGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace pagoda::text {

class BpeMerges {
 public:
  // Reused between words to spare allocations.
  struct Scratch {
    struct Symbol {
      uint32_t id;
      uint32_t previous;
      uint32_t next;
    };
    std::vector<Symbol> symbols;
    std::vector<uint64_t> heap;  // rank << 32 | place of the left symbol
  };

  // Lower ranks merge first. False when the pair has a merge already.
  bool Add(uint32_t left, uint32_t right, uint32_t rank, uint32_t merged) {
    return merges_.try_emplace(Pair(left, right), Merge{rank, merged}).second;
  }
  void Reserve(size_t count) { merges_.reserve(count); }

  // Merges `ids` in place. Returns the number of candidate pairs that were looked at.
  // REQUIRES: fewer than 2^32 - 1 ids.
  size_t Apply(std::vector<uint32_t>& ids, Scratch& scratch) const;

 private:
  struct Merge {
    uint32_t rank;
    uint32_t merged;
  };

  static uint64_t Pair(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
  const Merge* Find(uint32_t left, uint32_t right) const {
    auto found = merges_.find(Pair(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }

  absl::flat_hash_map<uint64_t, Merge> merges_;
};

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_BPE_MERGES_H_
