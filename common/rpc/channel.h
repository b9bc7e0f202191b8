// Channels to other Pagoda services: explicit limits, quick reconnects, and no hidden retries.
//
// Concurrency: plain functions; a channel may be used from any thread.
#ifndef PAGODA_COMMON_RPC_CHANNEL_H_
#define PAGODA_COMMON_RPC_CHANNEL_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "common/rpc/connection_limits.h"

namespace pagoda::rpc {

// The largest message of any service: a block of 64 MiB and 64 KiB for what surrounds it.
inline constexpr int kMaxMessageBytes = (64 << 20) + (64 << 10);
// Control messages are small; a bigger one is a mistake or an attack.
inline constexpr int kMaxControlMessageBytes = 4 << 20;

enum class ChannelKind { kControl, kBulk };

// A channel of its own connection to `address` (HOST:PORT or unix:PATH). Connecting happens with
// the first call; a failed connection is tried again after 100 ms to 2 s with jitter, and calls
// meanwhile fail at once (wait_for_ready is off).
//
// The last reference to a channel (contexts of calls hold one) must not be dropped on a thread of
// gRPC, as in a reaction: gRPC 1.51 then joins that very thread and frees what it still uses.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, ChannelKind kind,
                                           const ConnectionLimits& limits = {});

}  // namespace pagoda::rpc

#endif  // PAGODA_COMMON_RPC_CHANNEL_H_
