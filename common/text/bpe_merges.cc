#include "common/text/bpe_merges.h"

#include <algorithm>
#include <functional>

namespace pagoda::text {
namespace {

constexpr uint32_t kNone =
    UINT32_MAX;  // no neighbour; as an id: merged into the symbol on its left

uint64_t Candidate(uint32_t rank, uint32_t place) { return uint64_t{rank} << 32 | place; }

}  // namespace

size_t BpeMerges::Apply(std::vector<uint32_t>& ids, Scratch& scratch) const {
  if (ids.size() < 2) return 0;
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  symbols.clear();
  heap.clear();
  uint32_t count = static_cast<uint32_t>(ids.size());
  for (uint32_t i = 0; i < count; ++i) {
    symbols.push_back({ids[i], i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1});
    if (i + 1 == count) break;
    if (const Merge* merge = Find(ids[i], ids[i + 1])) heap.push_back(Candidate(merge->rank, i));
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());

  auto consider = [&](uint32_t place) {
    uint32_t next = symbols[place].next;
    if (next == kNone) return;
    if (const Merge* merge = Find(symbols[place].id, symbols[next].id)) {
      heap.push_back(Candidate(merge->rank, place));
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  };

  size_t looked_at = 0;
  while (!heap.empty()) {
    ++looked_at;
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    uint64_t candidate = heap.back();
    heap.pop_back();
    uint32_t place = static_cast<uint32_t>(candidate);
    auto& left = symbols[place];
    if (left.id == kNone || left.next == kNone) continue;
    auto& right = symbols[left.next];
    // Symbols only grow, so a candidate whose pair has changed meanwhile has another rank.
    const Merge* merge = Find(left.id, right.id);
    if (merge == nullptr || merge->rank != candidate >> 32) continue;
    left.id = merge->merged;
    left.next = right.next;
    right.id = kNone;
    if (left.next != kNone) symbols[left.next].previous = place;
    if (left.previous != kNone) consider(left.previous);
    consider(place);
  }

  ids.clear();
  for (uint32_t place = 0; place != kNone; place = symbols[place].next) {
    ids.push_back(symbols[place].id);
  }
  return looked_at;
}

}  // namespace pagoda::text
