#include "common/placement/known_keys.h"

#include <algorithm>

namespace pagoda::placement {

size_t KnownKeys::LeadingKnown(std::span<const uint64_t> fingerprints) const {
  auto unknown = std::find_if(fingerprints.begin(), fingerprints.end(),
                              [&](uint64_t key) { return !entries_.contains(key); });
  return static_cast<size_t>(unknown - fingerprints.begin());
}

void KnownKeys::Touch(std::span<const uint64_t> fingerprints) {
  // What lies past the limit could not stay, and would push out its own ancestors.
  fingerprints = fingerprints.first(std::min(fingerprints.size(), limit_));
  for (size_t i = fingerprints.size(); i-- > 0;) {
    auto [entry, added] = entries_.try_emplace(fingerprints[i]);
    if (added) {
      recent_.push_front(fingerprints[i]);
      entry->second = recent_.begin();
    } else {
      recent_.splice(recent_.begin(), recent_, entry->second);
    }
  }
  while (entries_.size() > limit_) {
    entries_.erase(recent_.back());
    recent_.pop_back();
  }
}

}  // namespace pagoda::placement
