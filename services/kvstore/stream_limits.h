// The limits of a store's streams. Tests choose others; there are no flags for them.
#ifndef PAGODA_SERVICES_KVSTORE_STREAM_LIMITS_H_
#define PAGODA_SERVICES_KVSTORE_STREAM_LIMITS_H_

#include <cstdint>

#include "common/base/clock.h"

namespace pagoda::kvstore {

struct StreamLimits {
  // Blocks on their way to one connection: they pin slots.
  uint64_t inflight_bytes = uint64_t{64} << 20;
  // What a client may send unasked on one stream: a lone put is one round trip.
  uint64_t put_credit_bytes = uint64_t{8} << 20;
  // Room promised to one put stream and not filled yet; one block may always be.
  uint64_t reserved_bytes = uint64_t{64} << 20;
  // A reader that takes nothing for this long pins slots for nobody.
  Duration get_stall = std::chrono::seconds(5);
  // The same for promised room; longer, because progress is seen a whole block at a time.
  Duration put_stall = std::chrono::seconds(30);
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_STREAM_LIMITS_H_
