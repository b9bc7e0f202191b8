// The blocks that one worker should hold: fingerprints of the keys that were sent there, the most
// recently used within a limit. A wrong guess costs time, never a wrong answer.
//
// Concurrency: one thread at a time.
#ifndef PAGODA_COMMON_PLACEMENT_KNOWN_KEYS_H_
#define PAGODA_COMMON_PLACEMENT_KNOWN_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>

namespace pagoda::placement {

class KnownKeys {
 public:
  // REQUIRES: limit > 0.
  explicit KnownKeys(size_t limit) : limit_(limit) {}

  // How many of a prompt's first blocks are known, without a gap.
  size_t LeadingKnown(std::span<const uint64_t> fingerprints) const;

  // A prompt with these blocks went there. Deeper blocks count as older, so that a chain loses its
  // end first: a block whose ancestors are forgotten would be useless.
  void Touch(std::span<const uint64_t> fingerprints);

  size_t size() const { return entries_.size(); }

 private:
  const size_t limit_;
  std::list<uint64_t> recent_;  // most recent first
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> entries_;
};

}  // namespace pagoda::placement

#endif  // PAGODA_COMMON_PLACEMENT_KNOWN_KEYS_H_
